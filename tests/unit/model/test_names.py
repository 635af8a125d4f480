"""Names from outside are taken or refused at the door."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.model.errors import InvalidName
from streamhouse.model.names import TopicPartition, check_agent_id, check_group_id, check_topic_name

_BAD_EVERYWHERE = ["", ".", "..", "../x", "a/b", "a b", "a\0b", "a\n", "\n", "é", "'; DROP TABLE topics", "<script>"]


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "-", "_", "0", "a" * 249])
def test_a_name_that_every_kafka_client_takes_is_taken(name: str) -> None:
    assert check_topic_name(name) == name


@pytest.mark.parametrize("name", [*_BAD_EVERYWHERE, "a" * 250, "a" * 100_000])
def test_any_other_topic_name_is_refused_with_a_hint_and_a_short_message(name: str) -> None:
    with pytest.raises(InvalidName) as refused:
        check_topic_name(name)

    assert refused.value.hint is not None
    assert len(str(refused.value)) < 2_000


@given(st.text(max_size=300))
def test_what_is_taken_can_stand_in_a_path_and_in_a_key(name: str) -> None:
    try:
        check_topic_name(name)
    except InvalidName:
        return
    assert name.isascii()
    assert name not in (".", "..")
    assert not set(name) & set("/\\\0 \n:?*")


@pytest.mark.parametrize("name", [*_BAD_EVERYWHERE, "a" * 129])
def test_an_agent_id_that_could_not_be_a_file_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        check_agent_id(name)


def test_an_agent_id_may_be_as_long_as_a_host_name() -> None:
    assert check_agent_id("a" * 128) == "a" * 128


@pytest.mark.parametrize("name", ["g", "with space", "ü", "\n", "a" * 249, "ä" * 124])
def test_a_group_id_is_any_text_of_up_to_249_bytes(name: str) -> None:
    assert check_group_id(name) == name


@pytest.mark.parametrize("name", ["", "a\0", "a" * 250, "ä" * 125])
def test_a_group_id_that_cannot_be_stored_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        check_group_id(name)


@given(st.text(st.characters(), max_size=260))
def test_every_text_is_a_group_id_or_refused_and_nothing_else(name: str) -> None:
    try:
        assert check_group_id(name) == name
    except InvalidName:
        pass


def test_partitions_sort_by_topic_and_then_by_number() -> None:
    first, second = UUID(int=1), UUID(int=2)
    partitions = [TopicPartition(second, 0), TopicPartition(first, 10), TopicPartition(first, 2)]

    assert sorted(partitions) == [TopicPartition(first, 2), TopicPartition(first, 10), TopicPartition(second, 0)]
    assert str(TopicPartition(first, 2)) == f"{first}/2"
