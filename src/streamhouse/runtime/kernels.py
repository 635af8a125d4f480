"""Which of the compiled kernels this installation lacks: where none could be built, their Python twins do the work."""

from __future__ import annotations

from functools import cache
from importlib import import_module

KERNELS = (
    "streamhouse.core._key_partitions",
    "streamhouse.format._decode",
    "streamhouse.format._encode",
    "streamhouse.format._plain_batch",
    "streamhouse.format._scan",
    "streamhouse.log._wal_writer",
    "streamhouse.runtime._memory",
    "streamhouse.wire.flume._produce_scan",
    "streamhouse.wire.grpc._produce_rows",
    "streamhouse.wire.kafka._produce_scan",
)


@cache
def missing_kernels() -> tuple[str, ...]:
    return tuple(name for name in KERNELS if not _is_there(name))


def _is_there(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True
