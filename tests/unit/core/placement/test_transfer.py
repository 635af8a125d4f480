"""The states of a hand-over: the whole table, and what follows from it."""

from __future__ import annotations

from itertools import product

import pytest

from streamhouse.core.placement.transfer import TransferEvent, TransferState, next_state

PENDING, ACCEPTED = TransferState.PENDING, TransferState.ACCEPTED
COMPLETED, REJECTED, FAILED = TransferState.COMPLETED, TransferState.REJECTED, TransferState.FAILED
ACCEPT, REJECT = TransferEvent.ACCEPT, TransferEvent.REJECT
COMPLETE, TIME_OUT = TransferEvent.COMPLETE, TransferEvent.TIME_OUT

TABLE = {
    (PENDING, ACCEPT): ACCEPTED,
    (PENDING, REJECT): REJECTED,
    (PENDING, COMPLETE): None,
    (PENDING, TIME_OUT): FAILED,
    (ACCEPTED, ACCEPT): None,
    (ACCEPTED, REJECT): REJECTED,
    (ACCEPTED, COMPLETE): COMPLETED,
    (ACCEPTED, TIME_OUT): FAILED,
    **dict.fromkeys(product((COMPLETED, REJECTED, FAILED), TransferEvent), None),
}


def test_the_table_says_what_every_event_means_in_every_state() -> None:
    assert set(TABLE) == set(product(TransferState, TransferEvent))


@pytest.mark.parametrize(("state", "event"), TABLE, ids=lambda side: side.value)
def test_an_event_leads_where_the_table_says(state: TransferState, event: TransferEvent) -> None:
    assert next_state(state, event) is TABLE[state, event]


@pytest.mark.parametrize("state", TransferState, ids=lambda state: state.value)
def test_a_final_state_is_one_that_nothing_leaves(state: TransferState) -> None:
    assert state.is_final == all(next_state(state, event) is None for event in TransferEvent)


def test_states_are_stored_under_these_names() -> None:
    assert [state.value for state in TransferState] == ["pending", "accepted", "completed", "rejected", "failed"]
