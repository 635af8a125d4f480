"""How to get the packages that only a part of StreamHouse needs. The package index has another project by our name, so
nothing is to be installed by name."""

from __future__ import annotations

from typing import Literal

Extra = Literal["arrow", "spark", "lake", "otel"]


def install_hint(extra: Extra) -> str:
    return f"in a checkout of StreamHouse: pip install '.[{extra}]'"
