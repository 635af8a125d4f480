"""What stands for bytes: anything that can be written to a socket or a file without being copied first."""

from __future__ import annotations

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
