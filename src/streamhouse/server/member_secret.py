"""What tells the caller that joined a group from one that has only read the member's id, which everybody may."""

from __future__ import annotations

from hmac import compare_digest

from streamhouse.model.errors import InvalidInput
from streamhouse.runtime.entropy import new_secret


class MemberSecret:
    """Told to whoever joins, and asked of whoever acts as the member."""

    def __init__(self) -> None:
        self.text = new_secret()

    def check(self, given: str) -> None:
        if not compare_digest(given.encode(), self.text.encode()):
            raise InvalidInput(
                "the member's secret is missing or wrong",
                hint="send what the join answered beside the id",
            )
