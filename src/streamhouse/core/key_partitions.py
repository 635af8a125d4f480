"""Partitions for a whole column of keys at once: compiled where that was possible, else by its pure-Python twin."""

from __future__ import annotations

try:
    from streamhouse.core._key_partitions import key_partitions

    COMPILED = True
except ImportError:
    from streamhouse.core.key_partitions_twin import key_partitions

    COMPILED = False

__all__ = ["COMPILED", "key_partitions"]
