"""Python runs this by itself in every process of a driver under test: the functions of $HOLD_POINTS stop where told."""

import functools
import importlib
import json
import os
import time
from pathlib import Path

_PAUSE_SECONDS = 0.01


def _install(point: dict) -> None:
    owner_name, _, function_name = point["function"].rpartition(".")
    owner = importlib.import_module(point["module"])
    if owner_name:
        owner = getattr(owner, owner_name)
    function = getattr(owner, function_name)

    @functools.wraps(function)
    def held(*arguments, **named):
        if not point["is_after"]:
            _hold(point)
        result = function(*arguments, **named)
        if point["is_after"]:
            _hold(point)
        return result

    setattr(owner, function_name, held)


def _hold(point: dict) -> None:
    directory = Path(os.environ["HOLD_DIRECTORY"])
    if _count(directory, point["name"], point["skip"] + 1) != point["skip"]:
        return
    (directory / f"{point['name']}.reached").touch()
    while not (directory / f"{point['name']}.go").exists():
        time.sleep(_PAUSE_SECONDS)


def _count(directory: Path, name: str, limit: int) -> int:
    """How many calls there were before this one in all processes; at the limit counting ends."""
    for number in range(limit):
        try:
            (directory / f"{name}.{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return number
    return limit


for _point in json.loads(os.environ.get("HOLD_POINTS", "[]")):
    _install(_point)
