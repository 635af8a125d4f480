"""Where a page of partitions goes on, as callers say it: TOPIC/PARTITION."""

from __future__ import annotations


def after_name(text: str) -> tuple[str, int]:
    """To compare with (topic, partition), by number and not as text; what is no name is before all partitions of the
    topic that it may mean."""
    topic, _, number = text.rpartition("/")
    return topic, int(number) if number.isascii() and number.isdigit() else -1
