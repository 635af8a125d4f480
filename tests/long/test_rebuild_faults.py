"""A rebuild is killed with -9 while it reads and while it restores: run again, it restores what one run would have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from maintain_parts.commands import kill9_at, maintain
from maintain_parts.logs import SMALL_TAIL, create_topic, keyed_records, watermarks
from maintain_parts.metadata import facts
from node.process import Node
from node.storage import EmbeddedStorage, ServiceStorage, Storage, assert_rows_and_objects_agree, segments_of
from services.postgres import PostgresServer
from services.seaweed import S3Bucket
from spark_parts.driver import Hold
from spark_parts.nodes import OPTIONS, SparkNode
from spark_parts.rows import consume, produce

READING = Hold(name="reading", module="streamhouse.spark.jobs.bucket", function="audit_segments", is_after=True)
FOUND = Hold(name="found", module="streamhouse.cli.maintain_rebuild", function="_restore")
RESTORED = Hold(name="restored", module="streamhouse.cli.maintain_rebuild", function="_restore", is_after=True)


def restoring(store: str) -> Hold:
    """One partition of several is written, in a transaction that is not at its end."""
    return Hold(name="restoring", module=f"streamhouse.metadata.{store}.restore", function="_insert_partition", skip=1)


@dataclass(frozen=True, slots=True)
class Target:
    """A metadata store to rebuild into: what the command must be told, and what is in it then."""

    options: Sequence[str]
    storage: Storage


def fill(node: SparkNode) -> list[str]:
    """One topic that is in segments, and one that is only in the WAL."""
    stored = create_topic(node, 3, retention_ms="-1")
    waiting = create_topic(node, retention_ms="-1", segment_ms="3600000")
    for number in range(2):
        produce(node.bootstrap, stored, keyed_records(60, keys=20, seed=number))
        node.wait_in_segments(stored, 60 * (number + 1))
    produce(node.bootstrap, waiting, keyed_records(10, keys=20))
    assert segments_of(node.storage, waiting) == []
    return [stored, waiting]


def assert_rebuilt_alike(directory: Path, store: str, killed: Target, never_killed: Target, late: Target) -> None:
    """`killed` was killed at every step and run again, `late` when all was done."""
    for hold in (READING, FOUND, restoring(store)):
        kill9_at(hold, directory, "rebuild", *killed.options)
    for target in (killed, never_killed):
        with maintain(directory, "rebuild", *target.options) as driver:
            driver.finish()
    kill9_at(RESTORED, directory, "rebuild", *late.options)

    expected = facts(never_killed.storage)
    assert len(expected["partitions"]) == 4
    assert len(expected["segments"]) >= 3
    assert facts(killed.storage) == expected
    assert facts(late.storage) == expected
    # One that is done is not done again, and says so.
    with maintain(directory, "rebuild", *late.options) as driver:
        assert "the metadata store has topics already" in driver.finish(expected_code=1)
    assert facts(late.storage) == expected


def test_a_rebuild_into_sqlite_that_is_killed_ends_like_one_that_is_not(tmp_path: Path) -> None:
    directory = tmp_path / "node"
    storage = EmbeddedStorage(directory)
    with Node(directory, *OPTIONS, *SMALL_TAIL) as process:
        node = SparkNode(node=process, storage=storage)
        topics = fill(node)
        before = {topic: (consume(node.bootstrap, topic), watermarks(node.bootstrap, topic)) for topic in topics}
        process.kill9()
        for file in directory.glob("metadata.db*"):
            file.unlink()

        def beside(name: str) -> Target:
            (tmp_path / name).mkdir()
            place = f"sqlite://{tmp_path}/{name}/metadata.db"
            return Target(["--data-dir", str(directory), "--metadata", place], EmbeddedStorage(tmp_path / name))

        own = Target(["--data-dir", str(directory)], storage)
        assert_rebuilt_alike(tmp_path, "sqlite", own, beside("never-killed"), beside("late"))

        process.start()
        for topic, state in before.items():
            assert (consume(node.bootstrap, topic), watermarks(node.bootstrap, topic)) == state
        assert_rows_and_objects_agree(storage)


def test_a_rebuild_into_postgresql_that_is_killed_ends_like_one_that_is_not(
    tmp_path: Path, postgres_server: PostgresServer, s3_bucket: S3Bucket
) -> None:
    databases = [postgres_server.create_database() for _ in range(4)]
    try:
        lost, *others = (ServiceStorage(dsn, s3_bucket) for dsn in databases)
        options = (*OPTIONS, *SMALL_TAIL, "--durability", "object")
        with Node(tmp_path / "first", *lost.options, *options) as process:
            node = SparkNode(node=process, storage=lost)
            topics = fill(node)
            before = {topic: (consume(node.bootstrap, topic), watermarks(node.bootstrap, topic)) for topic in topics}
            process.kill9()

        targets = [Target([*each.options, "--data-dir", str(tmp_path / "second")], each) for each in others]
        assert_rebuilt_alike(tmp_path, "postgres", *targets)

        with Node(tmp_path / "second", *others[0].options, *options) as process:
            node = SparkNode(node=process, storage=others[0])
            for topic, state in before.items():
                assert (consume(node.bootstrap, topic), watermarks(node.bootstrap, topic)) == state
            assert_rows_and_objects_agree(others[0])
    finally:
        for dsn in databases:
            postgres_server.drop_database(dsn)
