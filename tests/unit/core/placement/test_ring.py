"""The ring gives the same owners in every process and every version, in balance, and moves only what it has to."""

from __future__ import annotations

from collections import Counter

import pytest

from streamhouse.core.placement.ring import (
    VNODES_PER_AGENT,
    Ring,
    fmix64,
    fnv1a_64,
    partition_key,
    point,
    shard_key,
)

TWO_TO_64 = 2**64
THREE = ("agent-1", "agent-2", "agent-3")
KEYS = [partition_key(f"topic-{number // 100}", number % 100) for number in range(10_000)]


def owners(*agent_ids: str) -> dict[str, str | None]:
    ring = Ring(agent_ids)
    return {key: ring.owner(key) for key in KEYS}


def moved(before: dict[str, str | None], after: dict[str, str | None]) -> list[str]:
    return [key for key in KEYS if before[key] != after[key]]


# Points


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        # From the test suite that the authors of FNV publish.
        ("", 0xCBF29CE484222325),
        ("a", 0xAF63DC4C8601EC8C),
        ("b", 0xAF63DF4C8601F1A5),
        ("foobar", 0x85944171F73967E8),
    ],
)
def test_the_published_vectors_of_fnv_1a_come_out(text: str, digest: int) -> None:
    assert fnv1a_64(text.encode()) == digest


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (0, 0),
        (1, 0xB456BCFC34C2CB2C),
        (2, 0x3ABF2A20650683E7),
        (0x0123456789ABCDEF, 0x87CBFBFE89022CEA),
        (TWO_TO_64 - 1, 0x64B5720B4B825F21),
    ],
)
def test_the_finaliser_is_that_of_murmur3(before: int, after: int) -> None:
    assert fmix64(before) == after


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Computed by a C program with uint64_t arithmetic.
        ("", 0xEFD01F60BA992926),
        ("agent-1:vn0", 0xEFDE67AD22A4D798),
        ("agent-1:vn1", 0x046B56FC53FD0684),
        ("agent-1:vn149", 0xAC08D38502AE26C4),
        ("agent-2:vn42", 0x49923E4B6E4669A9),
        ("agent-3:vn87", 0x782761DE4ABB9730),
        ("orders:0", 0x32BEA26AB73B199B),
        ("orders:1", 0x5E073EDA4682D4B1),
        ("orders:10", 0x3C8AFAD572372248),
        ("__groups:0", 0x1138315B1975225C),
        ("__groups:15", 0xDEE2C5FBE59159C9),
        ("größe-日本:7", 0x4A248722D0AA9AD7),
    ],
)
def test_these_points_are_the_same_in_every_version(text: str, expected: int) -> None:
    assert point(text) == expected


def test_keys_are_spelled_as_the_points_expect() -> None:
    assert partition_key("orders", 10) == "orders:10"
    assert shard_key(15) == "__groups:15"


# Owners


def test_these_owners_are_the_same_in_every_version() -> None:
    ring = Ring(THREE)
    partitions = [ring.owner(partition_key("orders", number)) for number in range(12)]
    shards = [ring.owner(shard_key(number)) for number in range(16)]
    assert partitions == [f"agent-{number}" for number in (1, 3, 1, 1, 2, 2, 3, 1, 1, 1, 2, 1)]
    assert shards == [f"agent-{number}" for number in (2, 2, 3, 3, 1, 3, 3, 2, 3, 3, 1, 2, 1, 3, 2, 2)]


def test_a_ring_without_agents_owns_nothing() -> None:
    assert Ring([]).owner("orders:0") is None
    assert Ring([]).positions() == []


def test_an_agent_alone_owns_everything() -> None:
    assert set(owners("agent-1").values()) == {"agent-1"}


def test_an_agent_that_is_named_twice_is_one_agent() -> None:
    assert Ring([*THREE, "agent-2"]).positions() == Ring(THREE).positions()


def test_positions_are_the_vnodes_of_every_agent_clockwise_at_their_points() -> None:
    positions = Ring(THREE).positions()
    assert VNODES_PER_AGENT == 150
    assert positions == sorted(positions)
    assert Counter(agent_id for _, agent_id in positions) == dict.fromkeys(THREE, 150)
    assert {place for place, agent_id in positions if agent_id == "agent-2"} == {
        point(f"agent-2:vn{number}") for number in range(150)
    }


def test_a_key_at_the_very_point_of_a_vnode_is_its_own() -> None:
    ring = Ring(THREE)
    assert [ring.owner(f"{agent_id}:vn{number}") for agent_id in THREE for number in range(150)] == [
        agent_id for agent_id in THREE for _ in range(150)
    ]


def test_behind_the_last_vnode_the_first_one_owns() -> None:
    ring = Ring(["agent-1", "agent-2"])
    (_, first), *_, (last_point, last) = ring.positions()
    behind = next(key for key in (f"t:{number}" for number in range(100_000)) if point(key) > last_point)
    assert first != last
    assert ring.owner(behind) == first


def test_where_vnodes_share_a_point_the_lower_agent_id_owns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamhouse.core.placement.ring.point", lambda text: 7)
    assert Ring(["b", "a", "c"]).owner("orders:0") == "a"


# Movement and balance, over 10,000 partitions


def test_one_agent_added_to_three_moves_about_a_quarter_and_only_to_itself() -> None:
    before, after = owners(*THREE), owners(*THREE, "agent-4")
    changed = moved(before, after)
    assert {after[key] for key in changed} == {"agent-4"}
    assert 2_000 < len(changed) < 3_000


def test_one_agent_lost_of_three_moves_only_its_own_and_to_both_others() -> None:
    before, after = owners(*THREE), owners("agent-1", "agent-3")
    changed = moved(before, after)
    assert changed == [key for key in KEYS if before[key] == "agent-2"]
    assert 2_800 < len(changed) < 3_900
    heirs = Counter(after[key] for key in changed)
    assert set(heirs) == {"agent-1", "agent-3"}
    assert min(heirs.values()) > len(changed) / 4


def test_an_agent_that_comes_back_gets_what_it_had() -> None:
    assert moved(owners(*THREE), owners("agent-3", "agent-2", "agent-1")) == []


@pytest.mark.parametrize("count", [2, 3, 5, 10, 20])
def test_every_agent_gets_within_a_third_of_its_share(count: int) -> None:
    shares = Counter(owners(*(f"agent-{number}" for number in range(count))).values())
    fair = len(KEYS) / count
    assert len(shares) == count
    assert fair * 2 / 3 < min(shares.values())
    assert max(shares.values()) < fair * 4 / 3


def test_the_partitions_of_one_topic_spread_as_well_as_those_of_many() -> None:
    ring = Ring(THREE)
    shares = Counter(ring.owner(partition_key("orders", number)) for number in range(3_000))
    assert min(shares[agent_id] for agent_id in THREE) > 800
