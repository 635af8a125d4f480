"""How much librdkafka says on stderr: nothing of brokers that went away, since one does, on purpose."""

from __future__ import annotations

_CRITICAL = 2
QUIET = {"log_level": _CRITICAL}
