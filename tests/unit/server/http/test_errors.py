"""Each of our errors on HTTP: a status, a name, and the same error again on the other side."""

from __future__ import annotations

import msgspec
import pytest

from streamhouse.model import errors
from streamhouse.model.errors import NotLeader, StreamHouseError, Unavailable
from streamhouse.server.http.errors import refusal
from streamhouse.wire.http import error_statuses
from streamhouse.wire.http.error_statuses import error_answer, error_of, status_of
from streamhouse.wire.http.planning import ErrorAnswer

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, StreamHouseError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_status_and_comes_back_as_what_it_was(kind: type[StreamHouseError]) -> None:
    problem = kind("it broke", hint="mend it")

    again = error_of(error_answer(problem))

    assert kind in error_statuses._STATUSES
    assert 400 <= status_of(problem) < 600
    assert type(again) is kind
    assert (again.message, again.hint) == ("it broke", "mend it")


def test_an_error_of_its_own_kind_has_the_status_of_the_nearest_above() -> None:
    class Special(NotLeader):
        pass

    assert status_of(Special("")) == status_of(NotLeader(""))


def test_an_error_of_a_newer_version_is_still_an_error() -> None:
    assert type(error_of(ErrorAnswer(error="of-tomorrow", message="what?"))) is StreamHouseError


def test_what_may_succeed_later_says_so() -> None:
    answer = refusal(Unavailable("not now"))

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_message_with_what_utf8_cannot_say_is_still_told() -> None:
    answer = refusal(Unavailable("a name: \ud800", hint="\udfff"))

    assert msgspec.json.decode(answer.body, type=ErrorAnswer).message == "a name: ?"
