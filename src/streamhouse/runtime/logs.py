"""The log of a process: one line per event, for people or for machines, and no secret in any of them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import TextIO
from urllib.parse import unquote

from streamhouse.model.settings import Kind, Settings

MASK = "********"
_SHORTEST_SECRET = 4
"""To look for anything shorter would mask half of what is said."""
_URL_PASSWORD = re.compile(r"(?<=://)([^/@:\s]*):(\S*)@|([?&][a-z]*password)=([^&\s]*)", re.IGNORECASE)
_OWN_NAME = "streamhouse"
_NAMED_VALUE = r"((?i:passw(?:or)?d|pwd|secret|token|key)\w*[\"']?\s*[=:]\s*[\"']?)({})(?!\w)"
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def configure_logs(settings: Settings, stream: TextIO) -> None:
    """For the whole process. What other libraries log comes out in the same form."""
    handler = logging.StreamHandler(stream)
    hide = SecretHider(secrets_of(settings), names_in(settings))
    handler.setFormatter(JsonLines(hide) if settings.log_format == "json" else TextLines(hide))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)


def secrets_of(settings: Settings) -> list[str]:
    """What must never be read in a log: secret settings, and passwords inside others."""
    secrets = [getattr(settings, item.name) for item in fields(Settings) if item.metadata["kind"] is Kind.SECRET]
    for text in (settings.metadata, settings.objects):
        for match in _URL_PASSWORD.finditer(text):
            password = match[2] or match[4] or ""
            secrets += [password, unquote(password)]
    return secrets


def names_in(settings: Settings) -> str:
    """What is said aloud of where things are: users, hosts and databases."""
    return " ".join(_URL_PASSWORD.sub(_masked, text) for text in (settings.metadata, settings.objects))


class SecretHider:
    """Masks secrets wherever they are read. One that is a name as well, of this product or in `names`, would take the
    meaning out of half of what is said, and hide nothing: it is masked where it stands as a value."""

    def __init__(self, secrets: Iterable[str], names: str = "") -> None:
        # Longest first: one may be a part of another.
        known = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)
        public = set(re.findall(r"[\w.-]+", names)) | {_OWN_NAME}
        self._known = _any_of([secret for secret in known if secret not in public], "{}")
        self._values = _any_of([secret for secret in known if secret in public], _NAMED_VALUE)

    def __call__(self, text: str) -> str:
        """Those that are known, and whatever looks like a password in a URL."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        if self._values is not None:
            text = self._values.sub(rf"\1{MASK}", text)
        return _URL_PASSWORD.sub(_masked, text)


def _any_of(words: Sequence[str], where: str) -> re.Pattern[str] | None:
    return re.compile(where.format("|".join(map(re.escape, words)))) if words else None


def _masked(match: re.Match[str]) -> str:
    return f"{match[3]}={MASK}" if match[3] else f"{match[1]}:{MASK}@"


class TextLines(logging.Formatter):
    """Time, level, logger and message; a traceback follows on the same line."""

    def __init__(self, hide: SecretHider) -> None:
        super().__init__()
        self._hide = hide

    def format(self, record: logging.LogRecord) -> str:
        parts = [_message(record), *_traceback(self, record)]
        said = " | ".join(part for part in parts if part.strip())
        return _UNPRINTABLE.sub(_escaped, f"{_time(record)} {record.levelname} {record.name} {self._hide(said)}")


class JsonLines(logging.Formatter):
    """An object a line. `error` is there where an exception was logged, and its `traceback`."""

    def __init__(self, hide: SecretHider) -> None:
        super().__init__()
        self._hide = hide

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._hide(_message(record)),
        }
        traceback = _traceback(self, record)
        if traceback:
            event["error"] = self._hide(traceback[-1])
            event["traceback"] = self._hide("\n".join(traceback))
        return json.dumps(event, ensure_ascii=True)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    """What cannot be put together is shown in its parts: a log must not fail."""
    try:
        return record.getMessage()
    except Exception:
        return f"{record.msg!r} {record.args!r}"


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> Sequence[str]:
    lines: list[str] = []
    if record.exc_info and record.exc_info[0] is not None:
        lines += formatter.formatException(record.exc_info).splitlines()
    if record.stack_info:
        lines += record.stack_info.splitlines()
    return lines


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] <= "\x1f" else f"\\u{ord(match[0]):04x}"
