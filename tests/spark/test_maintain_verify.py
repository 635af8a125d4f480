"""A bucket is read through in parallel: a sound one is sound, and each kind of damage is found where it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from maintain_parts.logs import SMALL_TAIL, connection_to, create_topic, keyed_records
from node.storage import Segment, segments_of
from services.postgres import PostgresServer
from services.seaweed import SeaweedServer
from spark_parts.nodes import SparkNode, on_services
from spark_parts.rows import produce
from streamhouse.cli.maintain_report import print_verification
from streamhouse.format.object_keys import parse_segment_key, segment_key
from streamhouse.model.errors import StorageUnavailable
from streamhouse.runtime.entropy import new_uuid
from streamhouse.spark.jobs.compact import Compaction, compact
from streamhouse.spark.jobs.verify import Report, Verification, survey, verify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = 6


@pytest.fixture(scope="module")
def node(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, s3_server: SeaweedServer
) -> Iterator[SparkNode]:
    directory = tmp_path_factory.mktemp("node")
    options = (*SMALL_TAIL, "--durability", "object")
    with on_services(directory, postgres_server, s3_server, *options) as made:
        yield made


def segments_with(node: SparkNode, topic: str, count: int) -> list[Segment]:
    """So many segments in one partition."""
    written = 0
    while len(segments_of(node.storage, topic)) < count:
        written += 20
        produce(node.bootstrap, topic, keyed_records(20, keys=5))
        node.wait_in_segments(topic, written)
    return segments_of(node.storage, topic)


def messages(report: Report, segment: Segment) -> str:
    return " | ".join(finding.message for finding in report.violations if segment.object_key in finding.message)


def test_damage_is_found_where_it_is(spark: SparkSession, node: SparkNode, capsys: pytest.CaptureFixture[str]) -> None:
    topic = create_topic(node)
    segments = segments_with(node, topic, KINDS)
    job = Verification(connection=connection_to(node), topics=[topic], settling_ms=0)
    everything = Verification(connection=connection_to(node), settling_ms=3_600_000)

    assert survey(job).segments == len(segments)
    sound = verify(spark, everything)
    assert sound.findings == []
    assert (sound.partitions, sound.segments) == (1, len(segments))
    assert sound.records >= sum(segment.end_offset - segment.base_offset for segment in segments)

    contents = [node.storage.read_object(segment.object_key) for segment in segments]
    missing, flipped, cut, swapped, emptied = segments[:5]
    node.storage.write_object(missing.object_key, None)
    node.storage.write_object(flipped.object_key, contents[1][:100] + b"\x00\xff\x00" + contents[1][103:])
    node.storage.write_object(cut.object_key, contents[2][:-5])
    node.storage.write_object(swapped.object_key, contents[4])
    node.storage.write_object(emptied.object_key, b"")
    named = parse_segment_key(segments[5].object_key)
    assert named is not None
    extra = segment_key(named.topic_id, named.partition, named.base_offset, named.epoch, new_uuid())
    node.storage.write_object(extra, contents[5])

    report = verify(spark, job)

    assert messages(report, missing).endswith(": is not there")
    assert "does not match its CRC" in messages(report, flipped)
    assert "does not end like a STRM segment" in messages(report, cut)
    assert f"holds offsets {emptied.base_offset} to {emptied.end_offset - 1}" in messages(report, swapped)
    assert "does not match its checksum" in messages(report, swapped)
    assert "does not start like a STRM segment" in messages(report, emptied)
    assert all(messages(report, sound_one) == "" for sound_one in segments[5:])
    notes = [finding for finding in report.findings if finding not in report.violations]
    assert [(note.subject, note.message) for note in notes] == [(f"object {extra}", "is referred to by nothing")]

    print_verification(report, as_json=True, dry_run=False)
    shown = json.loads(capsys.readouterr().out)
    assert len(shown["violations"]) == len(report.violations) >= 5
    print_verification(report, as_json=False, dry_run=False)
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"checked 1 partition, {len(segments)} segments, ")


def test_a_damaged_wal_object_is_found(spark: SparkSession, node: SparkNode) -> None:
    key = f"wal/agent/{1:015d}-{new_uuid().hex}.shwo"
    node.storage.write_object(key, b"not a WAL object, and not empty either")
    try:
        report = verify(spark, Verification(connection=connection_to(node)))
    finally:
        node.storage.write_object(key, None)

    assert [finding.message for finding in report.violations if key in finding.subject] == [
        "the object does not start like a WAL object of this version"
    ]


def test_workers_whose_keys_are_refused_say_so_in_our_words(spark: SparkSession, node: SparkNode) -> None:
    topic = create_topic(node, cleanup_policy="compact")
    segments_with(node, topic, 1)
    connection = connection_to(node)
    wrong = replace(connection, s3=replace(connection.s3, secret_access_key="hunter2"))

    with pytest.raises(StorageUnavailable, match=r"^S3 refuses these keys: the secret does not belong") as caught:
        compact(spark, Compaction(connection=wrong, topics=[topic], dry_run=True))

    assert "hunter2" not in str(caught.value)
