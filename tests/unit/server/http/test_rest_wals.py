"""Since when an agent is said to be silent on the page of the write-ahead logs."""

from __future__ import annotations

from streamhouse.broker.cluster_work import Asked
from streamhouse.client.peer import NodeWal
from streamhouse.runtime.watched import Silence
from streamhouse.server.http.rest.wal import since_it_is_known

WAL = NodeWal(disk=None, gathered_batches=0, gathered_bytes=0, in_flight=[], uncovered_records=0, uncovered_bytes=0)
EARLY, LATE = Silence(1_000, "cannot be reached"), Silence(9_000, "no answer within 3000 ms")


def test_an_agent_is_silent_since_the_first_question_of_any_kind_that_it_did_not_answer() -> None:
    asked = Asked({"a": WAL}, {"b": LATE, "c": EARLY, "d": LATE})
    found = since_it_is_known(asked, {"a": EARLY, "b": EARLY, "c": LATE})
    assert found.silent == {"b": EARLY, "c": EARLY, "d": LATE}
    assert found.answers == {"a": WAL}, "it has answered this one"
