"""The checker finds what it is there for: each broken history is named, and a good one is left alone."""

from __future__ import annotations

import pytest

from faults.checker import Finding, History, Outcome, Poll, Seek, Send, Violation, check

ORDERS = ("orders", 0)
OTHER = ("orders", 1)


def sent(content: str, offset: int | None, outcome: Outcome = Outcome.ACKNOWLEDGED, producer: str = "p") -> Send:
    return Send(producer=producer, partition=ORDERS, content=content, outcome=outcome, offset=offset)


def polled(*records: tuple[int, str], consumer: str = "c") -> Poll:
    return Poll(consumer=consumer, partition=ORDERS, records=records)


def sought(offset: int, consumer: str = "c") -> Seek:
    return Seek(consumer=consumer, partition=ORDERS, offset=offset)


def kinds(findings: list[Finding]) -> list[Violation]:
    return [finding.violation for finding in findings]


GOOD_SENDS = [sent("a", 0), sent("b", 1), sent("c", 2)]


def test_a_log_that_keeps_its_promises_has_no_findings() -> None:
    reads = [
        sought(0),
        polled((0, "a")),
        polled((1, "b"), (2, "c")),
        polled((0, "a"), (1, "b"), (2, "c"), consumer="d"),
    ]
    assert check(History(sends=GOOD_SENDS, reads=reads)) == []


def test_an_empty_history_has_no_findings() -> None:
    assert check(History(sends=[], reads=[])) == []


def test_an_acknowledged_write_that_readers_went_past_is_lost() -> None:
    findings = check(History(sends=GOOD_SENDS, reads=[polled((0, "a"), (2, "c"), consumer="late")]))
    assert Violation.LOST_WRITE in kinds(findings)
    assert "'b'" in str(next(finding for finding in findings if finding.violation is Violation.LOST_WRITE))


def test_an_acknowledged_write_that_another_record_replaced_is_lost_and_its_offset_inconsistent() -> None:
    sends = [*GOOD_SENDS, sent("x", None, Outcome.UNKNOWN)]
    findings = check(History(sends=sends, reads=[polled((0, "a"), (1, "x"), (2, "c"))]))
    assert kinds(findings) == [Violation.LOST_WRITE, Violation.INCONSISTENT_OFFSET]


def test_an_acknowledged_write_that_nobody_came_to_is_unseen() -> None:
    findings = check(History(sends=GOOD_SENDS, reads=[polled((0, "a"), (1, "b"))]))
    assert kinds(findings) == [Violation.UNSEEN_WRITE]


def test_an_acknowledged_write_without_an_offset_must_be_read_too() -> None:
    findings = check(History(sends=[sent("a", 0), sent("b", None)], reads=[polled((0, "a"))]))
    assert kinds(findings) == [Violation.LOST_WRITE]


def test_a_write_read_only_in_another_partition_is_lost() -> None:
    elsewhere = Poll(consumer="c", partition=OTHER, records=((0, "a"),))
    findings = check(History(sends=[sent("a", 0), sent("b", 1)], reads=[elsewhere, polled((1, "b"))]))
    assert Violation.LOST_WRITE in kinds(findings)


def test_a_record_at_two_offsets_is_a_duplicate() -> None:
    reads = [polled((0, "a"), (1, "b"), (2, "c"), (3, "b"))]
    assert kinds(check(History(sends=GOOD_SENDS, reads=reads))) == [Violation.DUPLICATE]


def test_a_write_of_unknown_outcome_that_is_there_twice_is_a_duplicate() -> None:
    sends = [sent("a", None, Outcome.UNKNOWN)]
    assert kinds(check(History(sends=sends, reads=[polled((0, "a"), (1, "a"))]))) == [Violation.DUPLICATE]


def test_a_record_in_two_partitions_is_a_duplicate() -> None:
    reads = [polled((0, "a")), Poll(consumer="c", partition=OTHER, records=((7, "a"),))]
    assert kinds(check(History(sends=[sent("a", 0)], reads=reads))) == [Violation.DUPLICATE]


def test_two_readers_who_got_different_records_at_one_offset_are_inconsistent() -> None:
    sends = [sent("a", None, Outcome.UNKNOWN), sent("b", None, Outcome.UNKNOWN)]
    reads = [polled((0, "a")), polled((0, "b"), consumer="d")]
    assert kinds(check(History(sends=sends, reads=reads))) == [Violation.INCONSISTENT_OFFSET]


def test_two_producers_told_the_same_offset_are_inconsistent() -> None:
    sends = [sent("a", 0, producer="p"), sent("b", 0, producer="q")]
    findings = check(History(sends=sends, reads=[polled((0, "a"))]))
    assert Violation.INCONSISTENT_OFFSET in kinds(findings)


def test_a_record_read_elsewhere_than_acknowledged_is_inconsistent_with_the_record_that_is_there() -> None:
    findings = check(History(sends=[sent("a", 0), sent("b", 1)], reads=[polled((0, "b"), (1, "a"))]))
    assert kinds(findings) == [Violation.INCONSISTENT_OFFSET, Violation.INCONSISTENT_OFFSET]


def test_a_reader_that_jumped_over_a_record_skipped_it() -> None:
    reads = [polled((0, "a"), (1, "b"), (2, "c"), consumer="whole"), polled((0, "a")), polled((2, "c"))]
    assert kinds(check(History(sends=GOOD_SENDS, reads=reads))) == [Violation.SKIPPED_POLL]


def test_a_reader_that_began_behind_its_position_skipped() -> None:
    reads = [polled((0, "a"), (1, "b"), (2, "c"), consumer="whole"), sought(0), polled((1, "b"), (2, "c"))]
    assert kinds(check(History(sends=GOOD_SENDS, reads=reads))) == [Violation.SKIPPED_POLL]


def test_a_gap_in_which_nothing_is_known_to_be_is_not_skipped() -> None:
    sends = [sent("a", 0), sent("c", 5)]
    assert check(History(sends=sends, reads=[polled((0, "a"), (5, "c"))])) == []


def test_a_reader_that_asked_to_skip_did_not_skip() -> None:
    reads = [polled((0, "a"), (1, "b"), (2, "c"), consumer="whole"), polled((0, "a")), sought(2), polled((2, "c"))]
    assert check(History(sends=GOOD_SENDS, reads=reads)) == []


def test_a_reader_that_went_back_by_itself_is_non_monotonic() -> None:
    reads = [polled((0, "a"), (1, "b"), (2, "c")), polled((1, "b"))]
    assert kinds(check(History(sends=GOOD_SENDS, reads=reads))) == [Violation.NON_MONOTONIC_POLL]


def test_a_record_returned_twice_within_one_poll_is_non_monotonic() -> None:
    reads = [polled((0, "a"), (0, "a"), (1, "b"), (2, "c"))]
    assert kinds(check(History(sends=GOOD_SENDS, reads=reads))) == [Violation.NON_MONOTONIC_POLL]


def test_a_reader_that_asked_to_go_back_is_fine() -> None:
    reads = [polled((0, "a"), (1, "b"), (2, "c")), sought(1), polled((1, "b"), (2, "c"))]
    assert check(History(sends=GOOD_SENDS, reads=reads)) == []


def test_a_later_send_with_an_earlier_offset_is_non_monotonic() -> None:
    sends = [sent("b", 1), sent("a", 0), sent("c", 2)]
    findings = check(History(sends=sends, reads=[polled((0, "a"), (1, "b"), (2, "c"))]))
    assert kinds(findings) == [Violation.NON_MONOTONIC_SEND]


def test_two_producers_may_interleave() -> None:
    sends = [sent("b", 1, producer="p"), sent("a", 0, producer="q"), sent("c", 2, producer="p")]
    assert check(History(sends=sends, reads=[polled((0, "a"), (1, "b"), (2, "c"))])) == []


def test_a_refused_write_that_is_visible_is_an_aborted_read() -> None:
    sends = [*GOOD_SENDS, sent("no", None, Outcome.REFUSED)]
    reads = [polled((0, "a"), (1, "b"), (2, "c"), (3, "no"))]
    assert kinds(check(History(sends=sends, reads=reads))) == [Violation.ABORTED_READ]


def test_a_refused_write_that_is_not_visible_is_fine() -> None:
    sends = [*GOOD_SENDS, sent("no", None, Outcome.REFUSED)]
    assert check(History(sends=sends, reads=[polled((0, "a"), (1, "b"), (2, "c"))])) == []


@pytest.mark.parametrize("reads", [[], [polled((0, "maybe"))]], ids=["absent", "present"])
def test_a_write_of_unknown_outcome_may_be_there_or_not(reads: list[Poll]) -> None:
    assert check(History(sends=[sent("maybe", None, Outcome.UNKNOWN)], reads=reads)) == []


def test_a_record_that_nobody_sent_is_a_phantom() -> None:
    reads = [polled((0, "a"), (1, "b"), (2, "c"), (3, "?"))]
    assert kinds(check(History(sends=GOOD_SENDS, reads=reads))) == [Violation.PHANTOM_READ]


def test_a_record_with_one_changed_byte_is_a_lost_write_and_a_phantom() -> None:
    reads = [polled((0, "a"), (1, "B"), (2, "c"))]
    found = kinds(check(History(sends=GOOD_SENDS, reads=reads)))
    assert found == [Violation.LOST_WRITE, Violation.INCONSISTENT_OFFSET, Violation.PHANTOM_READ]


def test_only_an_acknowledgement_may_carry_an_offset() -> None:
    with pytest.raises(ValueError, match="only an acknowledgement"):
        sent("a", 3, Outcome.UNKNOWN)
