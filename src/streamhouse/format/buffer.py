"""The byte containers that the formats read, so that nothing is copied just to be parsed."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
