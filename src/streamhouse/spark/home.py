"""Where Spark's Java finds Spark: here without the archive that Python workers would import PySpark from.

Nothing in that archive is compiled: each worker process compiles PySpark anew, and takes three times as long to start
as with the installed package. On a busy machine that is longer than Spark waits for it (ten seconds, for a source)."""

from __future__ import annotations

import hashlib
import os
import site
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_VARIABLE = "SPARK_HOME"
_ARCHIVES = "python"


@contextmanager
def home_without_archives() -> Iterator[None]:
    """For the time in which Java is started; it keeps its environment. Does nothing where workers need the archive:
    they are another Python, or the package is not where every process of this one finds it."""
    if _VARIABLE in os.environ or not _workers_have_package():
        yield
        return
    try:
        home = _home()
    except OSError:
        # Nowhere to put it: it works without, only slower.
        yield
        return
    os.environ[_VARIABLE] = str(home)
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def _workers_have_package() -> bool:
    is_same_python = os.environ.get("PYSPARK_PYTHON") == sys.executable
    return is_same_python and str(_package().parent) in site.getsitepackages()


def _home() -> Path:
    """Made once for each installed PySpark, and kept: Java opens what is in it as long as it runs."""
    package = _package()
    digest = hashlib.sha256(f"{package} {_version()}".encode()).hexdigest()[:16]
    home = Path.home() / ".cache" / "streamhouse" / f"spark-{digest}"
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as unfinished:
            made = Path(unfinished, "home")
            made.mkdir()
            for entry in package.iterdir():
                if entry.name != _ARCHIVES:
                    (made / entry.name).symlink_to(entry)
            _put(made, home)
    return home


def _put(made: Path, home: Path) -> None:
    try:
        made.rename(home)
    except OSError:
        # Another process was faster; what it made is the same.
        if not home.exists():
            raise


def _version() -> str:
    import pyspark

    return pyspark.__version__


def _package() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent
