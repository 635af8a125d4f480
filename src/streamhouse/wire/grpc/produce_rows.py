"""Reads produce requests: compiled where that was possible, else by its pure-Python twin."""

from __future__ import annotations

from streamhouse.wire.grpc.produce_message import NOT_GIVEN, ProduceRows

try:
    from streamhouse.wire.grpc._produce_rows import read_rows

    COMPILED = True
except ImportError:
    from streamhouse.wire.grpc.produce_rows_twin import read_rows

    COMPILED = False

__all__ = ["COMPILED", "NOT_GIVEN", "ProduceRows", "read_rows"]
