"""What is said about kernels that are missing."""

from __future__ import annotations

from pathlib import Path

import streamhouse
from streamhouse.runtime.kernels import KERNELS, missing_kernels


def test_every_kernel_is_looked_for() -> None:
    package = Path(streamhouse.__file__).parent
    sources = {source.relative_to(package.parent).with_suffix("") for source in package.rglob("*.pyx")}

    assert sorted(".".join(source.parts) for source in sources) == sorted(KERNELS)


def test_here_all_of_them_were_compiled() -> None:
    """Else most tests would judge the twins alone."""
    assert missing_kernels() == ()
