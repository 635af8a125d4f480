"""The WAL's writer thread: the compiled one where it was built, else its Python twin."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamhouse.log.wal_writer_twin import WalWriter

    COMPILED: bool
else:
    try:
        from streamhouse.log._wal_writer import WalWriter

        COMPILED = True
    except ImportError:
        from streamhouse.log.wal_writer_twin import WalWriter

        COMPILED = False

__all__ = ["COMPILED", "WalWriter"]
