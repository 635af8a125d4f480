"""Randomness: ids that nobody else makes, secrets that nobody guesses, jitter so that retries do not march in step."""

from __future__ import annotations

import random
import secrets
from uuid import UUID, uuid4


def new_uuid() -> UUID:
    return uuid4()


def new_secret() -> str:
    return secrets.token_urlsafe(24)


def jittered(value: float) -> float:
    """Between half of the value and the value."""
    return value * random.uniform(0.5, 1.0)
