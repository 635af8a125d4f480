"""What an agent says of its way to the object store, and who leads what while some have none."""

from __future__ import annotations

import pytest

from streamhouse.core.placement.assignment import Assignment, Candidate
from streamhouse.core.placement.store_access import StoreAccess, StorePlacement, next_access

USUAL, STALLED, PROVEN, RECOVERING = (
    StoreAccess.USUAL,
    StoreAccess.STALLED,
    StoreAccess.PROVEN,
    StoreAccess.RECOVERING,
)


def after_probe(
    current: StoreAccess, wrote: bool, *, overdue: bool = False, other: bool = False, well_ms: int = 0
) -> StoreAccess:
    return next_access(
        current,
        is_overdue=overdue,
        wrote_probe=wrote,
        is_other_stalled=other,
        recovered_for_ms=well_ms,
        recovery_ms=1_000,
    )


def test_who_neither_stores_nor_writes_a_probe_is_stalled() -> None:
    assert after_probe(USUAL, False, overdue=True) is STALLED
    assert after_probe(PROVEN, False, overdue=True, other=True) is STALLED


def test_who_writes_a_probe_is_not_stalled_whatever_is_overdue() -> None:
    assert after_probe(USUAL, True, overdue=True) is USUAL


def test_a_failed_probe_alone_is_no_stall_and_no_proof() -> None:
    assert after_probe(USUAL, False, other=True) is USUAL
    assert after_probe(PROVEN, False, other=True) is USUAL


def test_a_probe_is_a_proof_while_another_needs_it() -> None:
    assert after_probe(USUAL, True, other=True) is PROVEN
    assert after_probe(PROVEN, True, other=True) is PROVEN
    assert after_probe(PROVEN, True) is USUAL


@pytest.mark.parametrize("other", [True, False])
def test_who_was_stalled_is_as_usual_when_that_is_long_over(other: bool) -> None:
    assert after_probe(STALLED, True, other=other) is RECOVERING
    assert after_probe(RECOVERING, True, other=other, well_ms=999) is RECOVERING
    assert after_probe(RECOVERING, True, other=other, well_ms=1_000) is (PROVEN if other else USUAL)


def test_who_was_stalled_and_fails_again_is_stalled_though_nothing_waits() -> None:
    assert after_probe(STALLED, False) is STALLED
    assert after_probe(RECOVERING, False) is STALLED


def owner(choice: str | None, holder: str, **access: StoreAccess) -> str | None:
    """Of a partition that the ring gives to `choice`, and, without those that are no candidates, to the first."""
    placement = StorePlacement(
        (Candidate(agent_id=agent_id, zone="", agent_group="default"), said) for agent_id, said in access.items()
    )

    def choose(assignment: Assignment) -> str | None:
        return assignment.ringed_owner("orders", 0, agent_group="default", zone="", pinned_to="")

    return placement.owner(choice, holder, choose)


def test_while_all_is_well_the_ring_decides() -> None:
    assert owner("a", "", a=USUAL, b=USUAL) == "a"
    assert owner("a", "b", a=USUAL, b=USUAL) == "a"
    assert owner("a", "b", a=PROVEN, b=USUAL) == "a"
    assert owner(None, "", b=USUAL) is None


def test_from_who_is_stalled_it_goes_to_who_has_shown_that_it_can_write() -> None:
    assert owner("a", "a", a=STALLED, b=PROVEN, c=USUAL) == "b"
    assert owner("a", "", a=STALLED, b=PROVEN) == "b"
    assert owner("b", "a", a=STALLED, b=PROVEN) == "b"


def test_while_nobody_has_shown_that_it_can_write_nobody_moves() -> None:
    assert owner("a", "a", a=STALLED, b=USUAL) == "a"
    assert owner("a", "a", a=STALLED, b=STALLED, c=RECOVERING) == "a"
    assert owner("a", "b", a=STALLED, b=STALLED) == "b"
    assert owner("a", "", a=STALLED, b=USUAL) == "a"


def test_it_stays_with_who_took_it_until_the_one_that_was_stalled_is_long_well() -> None:
    assert owner("a", "b", a=STALLED, b=PROVEN, c=PROVEN) == "b"
    assert owner("a", "b", a=STALLED, b=USUAL) == "b"
    assert owner("a", "b", a=RECOVERING, b=USUAL) == "b"
    assert owner("a", "b", a=USUAL, b=USUAL) == "a"


def test_who_is_recovering_keeps_what_it_has_and_takes_what_is_nobodys() -> None:
    assert owner("a", "a", a=RECOVERING, b=PROVEN) == "a"
    assert owner("a", "", a=RECOVERING, b=USUAL) == "a"
    assert owner("a", "", a=STALLED, b=RECOVERING, c=USUAL) == "b"
    assert owner("a", "", a=STALLED, b=RECOVERING, c=PROVEN) == "c"
    assert owner("a", "a", a=STALLED, b=RECOVERING) == "a"


def test_who_took_it_and_is_stalled_itself_gives_it_on() -> None:
    assert owner("a", "b", a=RECOVERING, b=STALLED, c=PROVEN) == "c"
    assert owner("a", "b", a=STALLED, b=STALLED, c=PROVEN) == "c"
