"""Exports end with every record once, whatever step they were killed at, and go on where they stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from maintain_parts.exports import TARGETS, Place
from maintain_parts.logs import SMALL_TAIL, connection_to, create_topic, keyed_records
from services.postgres import PostgresServer
from services.seaweed import ACCESS_KEY_ID, SECRET_ACCESS_KEY, SeaweedServer
from spark_parts.nodes import SparkNode, on_services
from spark_parts.rows import consume, produce, produce_with_every_codec
from streamhouse.spark.jobs.export import job as export_job
from streamhouse.spark.jobs.export.job import Export, export
from streamhouse.spark.jobs.merge import Merging, merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Killed(BaseException):
    """Nobody catches it: all that is left of the run is what it wrote."""


@pytest.fixture(scope="module")
def node(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, s3_server: SeaweedServer
) -> Iterator[SparkNode]:
    with on_services(tmp_path_factory.mktemp("node"), postgres_server, s3_server, *SMALL_TAIL) as made:
        yield made


@pytest.fixture(params=TARGETS)
def place(request: pytest.FixtureRequest, spark: SparkSession, node: SparkNode, tmp_path: Path) -> Place:
    topic = create_topic(node, 2)
    produce_with_every_codec(node.bootstrap, topic, keyed_records(200, keys=50))
    return Place(spark, node, topic, request.param, tmp_path / "lake")


def die(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, *, after: bool) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def dying(*arguments: Any, **named: Any) -> Any:
        if after:
            original(*arguments, **named)
        raise Killed

    monkeypatch.setattr(owner, name, dying)


def test_what_is_new_is_added_each_time(place: Place, node: SparkNode, spark: SparkSession) -> None:
    assert {each.partition for each in place.export(dry_run=True).partitions} == {0, 1}

    first = place.export()
    assert first.rows == 200
    assert place.read() == consume(node.bootstrap, place.topic)
    assert place.export().rows == 0

    # The tail was exported as well, and segments of other sizes hold it by now.
    produce_with_every_codec(node.bootstrap, place.topic, keyed_records(100, keys=50, seed=2))
    node.wait_in_segments(place.topic, 300)
    merge(spark, Merging(connection=connection_to(node), topics=[place.topic]))
    assert place.export().rows == 100
    assert place.read() == consume(node.bootstrap, place.topic)


def test_partitions_that_are_added_are_exported_from_their_beginning(place: Place, node: SparkNode) -> None:
    assert place.export().rows == 200
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_partitions([NewPartitions(place.topic, 5)])[place.topic].result()
    produce(node.bootstrap, place.topic, keyed_records(100, keys=50, seed=2))

    assert place.export().rows == 100

    exported = place.read()
    assert exported == consume(node.bootstrap, place.topic)
    assert {row.partition for row in exported} == set(range(5))


def test_a_killed_run_is_finished_by_the_next(place: Place, node: SparkNode, monkeypatch: pytest.MonkeyPatch) -> None:
    target = TARGETS[place.format]
    steps: list[tuple[object, str, bool]] = [
        (target, "begin", False),
        (target, "begin", True),
        (export_job, "run_pointers", True),
        (target, "commit", False),
        (target, "commit", True),
    ]
    for seed, (owner, name, after) in enumerate(steps):
        produce(node.bootstrap, place.topic, keyed_records(20, keys=50, seed=seed))
        with monkeypatch.context() as dying:
            die(dying, owner, name, after=after)
            with pytest.raises(Killed):
                place.export()
        produce(node.bootstrap, place.topic, keyed_records(20, keys=50, seed=seed))

        place.export()

        assert place.read() == consume(node.bootstrap, place.topic), f"killed at {name}"


def test_two_runs_at_once_export_every_record_once(
    place: Place, node: SparkNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one overtakes between the first one's files and its commit."""
    target = TARGETS[place.format]
    original = target.commit
    overtaken = []

    def commit(self: Any, *arguments: Any) -> bool:
        if not overtaken:
            overtaken.append(True)
            place.export()
            produce(node.bootstrap, place.topic, keyed_records(20, keys=50, seed=7))
            place.export()
        return original(self, *arguments)

    monkeypatch.setattr(target, "commit", commit)
    place.export()

    assert overtaken
    assert place.read() == consume(node.bootstrap, place.topic)


def test_parquet_files_and_delta_tables_in_a_bucket(
    spark: SparkSession, node: SparkNode, s3_server: SeaweedServer
) -> None:
    topic = create_topic(node)
    produce_with_every_codec(node.bootstrap, topic, keyed_records(100, keys=5))
    bucket = s3_server.create_bucket()
    options = {
        "aws_endpoint_url": bucket.endpoint,
        "aws_region": "us-east-1",
        "aws_access_key_id": ACCESS_KEY_ID,
        "aws_secret_access_key": SECRET_ACCESS_KEY,
        "aws_allow_http": "true",
    }
    for format_name in ("parquet", "delta"):
        job = Export(
            connection=connection_to(node),
            topic=topic,
            format=format_name,
            location=f"s3://{bucket.name}/{format_name}",
            options=options,
        )
        assert export(spark, job).rows == 100
        assert export(spark, job).rows == 0
