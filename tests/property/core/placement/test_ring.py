"""The ring against a second implementation of it, and what it promises for any agents and keys."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.core.placement.ring import Ring, fmix64, fnv1a_64, point

UINT64 = 2**64 - 1
AGENT_IDS = st.text("abcxyz0189._-", min_size=1, max_size=12)
AGENTS = st.lists(AGENT_IDS, min_size=1, max_size=5, unique=True)
KEYS = [f"topic-{number // 10}:{number % 10}" for number in range(200)]

_few = settings(max_examples=60, deadline=None, database=None)


def fnv1a_64_by_shifts(data: bytes) -> int:
    """The prime is 2^40 + 2^8 + 0xb3."""
    digest = 14695981039346656037
    for byte in data:
        digest ^= byte
        digest = ((digest << 40) + (digest << 8) + digest * 0xB3) % 2**64
    return digest


def fmix64_undone(digest: int) -> int:
    """A shift by more than half the width undoes itself; an odd factor has an inverse."""
    digest ^= digest >> 33
    digest = digest * pow(0xC4CEB9FE1A85EC53, -1, 2**64) & UINT64
    digest ^= digest >> 33
    digest = digest * pow(0xFF51AFD7ED558CCD, -1, 2**64) & UINT64
    return digest ^ (digest >> 33)


def owner_by_distance(agent_ids: list[str], key: str) -> str:
    """Every vnode's distance clockwise from the key, and the lowest id among the nearest: no sorting, no wrapping."""
    vnodes = ((point(f"{agent_id}:vn{number}"), agent_id) for agent_id in agent_ids for number in range(150))
    return min(((place - point(key)) & UINT64, agent_id) for place, agent_id in vnodes)[1]


def owners(agent_ids: list[str]) -> list[str | None]:
    ring = Ring(agent_ids)
    return [ring.owner(key) for key in KEYS]


@given(st.binary(max_size=40))
def test_fnv_1a_agrees_with_a_second_implementation(data: bytes) -> None:
    assert fnv1a_64(data) == fnv1a_64_by_shifts(data)


@given(st.integers(0, UINT64))
def test_the_finaliser_can_be_undone(digest: int) -> None:
    assert 0 <= fmix64(digest) <= UINT64
    assert fmix64_undone(fmix64(digest)) == digest


@given(st.text(max_size=30))
def test_every_text_has_the_point_of_its_utf_8_bytes(text: str) -> None:
    assert fmix64_undone(point(text)) == fnv1a_64_by_shifts(text.encode("utf-8"))


@_few
@given(AGENTS, st.text(max_size=20))
def test_the_owner_is_the_agent_of_the_nearest_vnode_clockwise(agent_ids: list[str], key: str) -> None:
    assert Ring(agent_ids).owner(key) == owner_by_distance(agent_ids, key)


@_few
@given(AGENTS)
def test_the_order_of_the_agents_does_not_matter(agent_ids: list[str]) -> None:
    assert Ring(sorted(agent_ids)).positions() == Ring(agent_ids).positions() == Ring(agent_ids[::-1]).positions()


@_few
@given(AGENTS, AGENTS)
def test_any_change_of_agents_moves_only_from_those_that_go_and_to_those_that_come(
    before: list[str], after: list[str]
) -> None:
    gone, come = set(before) - set(after), set(after) - set(before)
    for old, new in zip(owners(before), owners(after), strict=True):
        assert old == new or old in gone or new in come


@_few
@given(AGENTS, AGENTS)
def test_an_agent_that_owns_a_key_among_many_owns_it_among_fewer(few: list[str], others: list[str]) -> None:
    for among_few, among_many in zip(owners(few), owners([*few, *others]), strict=True):
        assert among_many not in few or among_many == among_few
