"""The log found again in a bucket, after any history of leaders, lost uploads, merges and clean-up."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.core.rebuild import FoundSegment, choose_segments


@dataclass
class Cluster:
    """One partition: `committed` is in its database, `bucket` what is stored; an offset's value is who wrote it."""

    epoch: int = 1
    committed: list[FoundSegment] = field(default_factory=list)
    bucket: dict[str, FoundSegment] = field(default_factory=dict)
    values: dict[str, dict[int, int]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.committed[-1].end_offset if self.committed else 0

    def store(self, base: int, end: int, epoch: int, values: dict[int, int]) -> FoundSegment:
        key = f"{len(self.values)}"
        found = FoundSegment(
            object_key=key,
            base_offset=base,
            end_offset=end,
            record_count=1,
            size_bytes=1,
            min_timestamp_ms=0,
            max_timestamp_ms=0,
            epoch=epoch,
        )
        self.bucket[key] = found
        self.values[key] = values
        return found

    def upload(self, count: int) -> FoundSegment:
        written = {self.end + number: len(self.values) for number in range(count)}
        return self.store(self.end, self.end + count, self.epoch, written)

    def merge(self, start: int, stop: int) -> FoundSegment:
        old = self.committed[start:stop]
        values = {offset: value for each in old for offset, value in self.values[each.object_key].items()}
        return self.store(old[0].base_offset, old[-1].end_offset, old[-1].epoch, values)


def grow(draw: st.DrawFn, cluster: Cluster) -> None:
    match draw(st.sampled_from(["commit", "commit", "lose", "fail over", "merge", "leave a merge", "clean up"])):
        case "commit":
            cluster.committed.append(cluster.upload(draw(st.integers(1, 5))))
        case "lose":
            # The leader dies between upload and commit, and its successor goes on from the committed end.
            cluster.upload(draw(st.integers(1, 5)))
            cluster.epoch += 1
            cluster.committed.append(cluster.upload(draw(st.integers(1, 5))))
        case "fail over":
            cluster.epoch += 1
        case ("merge" | "leave a merge") as kind if len(cluster.committed) > 1:
            start = draw(st.integers(0, len(cluster.committed) - 2))
            stop = draw(st.integers(start + 2, len(cluster.committed)))
            merged = cluster.merge(start, stop)
            if kind == "merge":
                cluster.committed[start:stop] = [merged]
        case "clean up":
            needed = {each.object_key for each in cluster.committed}
            for key in sorted(cluster.bucket.keys() - needed):
                if draw(st.booleans()):
                    del cluster.bucket[key]


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    cluster = Cluster()
    for _ in range(draw(st.integers(1, 15))):
        grow(draw, cluster)
    return cluster


@settings(database=None, max_examples=400, deadline=None)
@given(clusters(), st.randoms(use_true_random=False))
def test_every_committed_offset_is_found_again_with_its_value(cluster: Cluster, chance: Random) -> None:
    found = list(cluster.bucket.values())
    chance.shuffle(found)

    chosen = choose_segments(found)

    values = {offset: value for each in chosen.extents for offset, value in cluster.values[each.object_key].items()}
    expected = {
        offset: value for each in cluster.committed for offset, value in cluster.values[each.object_key].items()
    }
    assert chosen.gaps == ()
    assert {offset: values.get(offset) for offset in expected} == expected
    # An upload that was never committed may only go on where the log ends.
    assert all(offset >= cluster.end for offset in values.keys() - expected.keys())
