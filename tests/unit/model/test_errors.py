"""The tree of errors is the one that its docstring draws."""

from __future__ import annotations

import inspect

from streamhouse.model import errors
from streamhouse.model.errors import StreamHouseError


def drawn_tree() -> dict[str, str]:
    """Each class's parent, from the drawing."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        name = next((word for word in line.replace("│", " ").split() if word[0].isupper() and word.isalnum()), None)
        if name is None or not line.strip("│├└─ ").startswith(name):
            continue
        depth = line.index(name) // 4
        if name != "StreamHouseError" and "─" not in line:
            continue
        del path[depth:]
        if path:
            parents[name] = path[-1]
        path.append(name)
    return parents


def test_the_drawing_and_the_classes_agree() -> None:
    classes = {
        name: found.__bases__[0].__name__
        for name, found in inspect.getmembers(errors, inspect.isclass)
        if issubclass(found, StreamHouseError) and found is not StreamHouseError
    }

    assert drawn_tree() == classes


def test_a_message_ends_with_its_hint() -> None:
    assert str(StreamHouseError("it broke")) == "it broke"
    assert str(StreamHouseError("it broke", hint="mend it")) == "it broke (mend it)"
