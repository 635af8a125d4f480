"""Examples may take as long as they need: a busy machine is not a failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("format", deadline=None)
settings.load_profile("format")
