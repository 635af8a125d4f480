"""Python functions of a pipeline: found beside its file or among the installed packages, and sent to the executors."""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from streamhouse.model.errors import InvalidConfig
from streamhouse.spark.pipelines.functions import Function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FunctionLoader:
    """Modules beside the file are sent along, since executors cannot have them: a module as it is, a package whole."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._local: set[Path] = set()

    def find(self, name: str) -> Function:
        """`name` is module:function; InvalidConfig says what of it is not there."""
        module_name, _, function_name = name.partition(":")
        if str(self._directory) not in sys.path:
            sys.path.insert(0, str(self._directory))
        try:
            module = importlib.import_module(module_name)
        except Exception as error:
            # A module that fails while it is imported can raise anything.
            raise InvalidConfig(f"cannot import {module_name!r}: {type(error).__name__}: {error}") from error
        function = getattr(module, function_name, None)
        if not callable(function):
            raise InvalidConfig(f"module {module_name!r} has no function {function_name!r}")
        self._remember(module_name)
        return function  # type: ignore[no-any-return]

    def send(self, session: SparkSession) -> None:
        """To workers that run now or later."""
        for path in sorted(self._local):
            if path.is_dir():
                directory = tempfile.mkdtemp(prefix="streamhouse-pipeline-")
                archive = shutil.make_archive(str(Path(directory) / path.name), "zip", path.parent, path.name)
                session.sparkContext.addPyFile(archive)
            else:
                session.sparkContext.addPyFile(str(path))

    def _remember(self, module_name: str) -> None:
        top = module_name.partition(".")[0]
        for candidate in (self._directory / f"{top}.py", self._directory / top):
            if candidate.exists():
                self._local.add(candidate)
                return
