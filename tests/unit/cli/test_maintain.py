"""`streamhouse maintain …`: what the commands ask of the jobs, and how they tell what came of it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest

from services.ports import free_port
from streamhouse.cli import maintain, spark_node
from streamhouse.cli.main import run
from streamhouse.client.admin import Admin
from streamhouse.client.cluster import Cluster
from streamhouse.core.rebuild import Gap, RebuiltMetadata, RebuiltPartition, RebuiltTopic
from streamhouse.spark.jobs import compact, merge, rebuild, verify
from streamhouse.spark.jobs.bucket import Damaged
from streamhouse.spark.jobs.export import job as export_job
from streamhouse.spark.jobs.export.job import Exported, ExportReport
from streamhouse.spark.jobs.rebuild import MissingOffsets, RebuildReport
from streamhouse.spark.jobs.swap import Swap
from streamhouse.spark.jobs.verify import Finding, Report, Severity
from streamhouse.testing import Broker

SWAP = Swap(
    topic="orders",
    partition=1,
    base_offset=0,
    end_offset=100,
    segments_before=3,
    segments_after=1,
    records_before=100,
    records_after=40,
    bytes_before=5000,
    bytes_after=2000,
)


class Jobs:
    """In the place of every job: what they were asked, and what they answer."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.masters: list[str] = []
        self.answer: Any = None

    def run(self, spark: object, job: Any, *, bars: object) -> Any:
        self.asked.append(job)
        return self.answer


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker(http=True, default_partitions=1) as broker:
        asyncio.run(_create(broker.bootstrap))
        yield broker


async def _create(bootstrap: str) -> None:
    async with Cluster.connect(bootstrap) as cluster:
        await Admin(cluster).create_topic("orders", configs={"cleanup.policy": "compact"})


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch, node: Broker) -> Jobs:
    monkeypatch.setattr(spark_node, "DEFAULT_BOOTSTRAP", node.bootstrap)
    for variable in (
        "STREAMHOUSE_ENDPOINT",
        "STREAMHOUSE_BOOTSTRAP",
        "STREAMHOUSE_CONFIG",
        "AWS_ACCESS_KEY_ID",
        "AWS_ENDPOINT_URL",
    ):
        monkeypatch.delenv(variable, raising=False)
    jobs = Jobs()

    @contextmanager
    def session(job: str, master: str, conf: dict[str, str]) -> Iterator[object]:
        jobs.masters.append(master)
        yield object()

    monkeypatch.setattr(maintain, "_session", session)
    for module, name in (
        (compact, "compact"),
        (merge, "merge"),
        (export_job, "export"),
        (verify, "verify"),
        (rebuild, "rebuild"),
    ):
        monkeypatch.setattr(module, name, jobs.run)
    return jobs


def test_compact_is_asked_for_topics_of_a_node_and_shows_what_it_did(
    jobs: Jobs, node: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs.answer = [SWAP]

    code = run(
        [
            "maintain",
            "compact",
            "orders",
            "--endpoint",
            node.endpoint,
            "--master",
            "local[3]",
            "--target-size",
            "1MiB",
        ]
    )

    assert code == 0
    (job,) = jobs.asked
    assert (job.topics, job.target_bytes, job.dry_run, job.connection.endpoint) == (
        ("orders",),
        2**20,
        False,
        node.endpoint,
    )
    assert jobs.masters == ["local[3]"]
    out = capsys.readouterr().out
    assert "orders/1" in out
    assert "100 -> 40" in out
    assert out.splitlines()[-1] == "3 segments rewritten, 60 records left out"


def test_a_dry_run_says_what_would_be(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.answer = [
        Swap(
            topic="orders",
            partition=0,
            base_offset=0,
            end_offset=10,
            segments_before=2,
            segments_after=None,
            records_before=10,
            records_after=10,
            bytes_before=100,
            bytes_after=None,
        )
    ]

    assert run(["maintain", "merge", "--dry-run"]) == 0

    assert jobs.asked[0].dry_run
    assert capsys.readouterr().out.splitlines()[-1] == "2 segments would be rewritten, 0 records left out"


def test_nothing_to_do_is_said_so(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.answer = []

    assert run(["maintain", "compact"]) == 0
    assert capsys.readouterr().out == "nothing to do\n"
    assert run(["maintain", "compact", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"dry_run": False, "rewritten": []}


def test_the_executors_get_the_credentials_that_were_given(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.answer = []
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    run(["maintain", "merge", "--s3-endpoint", "http://s3:1"])

    s3 = jobs.asked[0].connection.s3
    assert (s3.endpoint, s3.access_key_id, s3.secret_access_key) == ("http://s3:1", "id", "secret")


def test_export_takes_options_for_its_target_and_counts_rows(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.answer = ExportReport(
        partitions=[Exported(partition=0, start=5, end=10, lost=0)], files=1, rows=5, bytes_written=2048
    )

    code = run(
        ["maintain", "export", "orders", "--to", "/lake", "--format", "iceberg", "--option", "uri=http://catalog"]
    )

    assert code == 0
    (job,) = jobs.asked
    assert (job.topic, job.format, job.location, job.options) == (
        "orders",
        "iceberg",
        "/lake",
        {"uri": "http://catalog"},
    )
    assert capsys.readouterr().out.splitlines()[-1] == "exported 5 records to 1 file, 2KiB"
    assert run(["maintain", "export", "orders", "--to", "/lake", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["topic"], shown["rows"], shown["partitions"][0]["start"]) == ("orders", 5, 5)


def test_verify_ends_with_exit_code_one_if_there_are_violations(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    violation = Finding(severity=Severity.VIOLATION, subject="orders/0 segment 0 to 9", message="is not there")
    note = Finding(severity=Severity.NOTE, subject="object x", message="is referred to by nothing")
    jobs.answer = Report(partitions=1, segments=2, records=10, bytes_read=7, findings=[violation, note])

    assert run(["maintain", "verify"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "violation orders/0 segment 0 to 9: is not there",
        "note object x: is referred to by nothing",
        "checked 1 partition, 2 segments, 0 WAL objects, 10 records: 1 violation, 1 note",
    ]

    jobs.answer = Report(partitions=1, findings=[note])
    assert run(["maintain", "verify", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["violations"] == []
    assert shown["notes"] == [{"subject": "object x", "message": "is referred to by nothing"}]


def test_missing_and_wrong_arguments_are_usage_errors(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["maintain", "export", "orders"]) == 2
    assert "--to" in capsys.readouterr().err
    assert run(["maintain", "export", "orders", "--to", ""]) == 2
    assert "give a directory, or s3://bucket/prefix" in capsys.readouterr().err
    assert run(["maintain", "export", "orders", "--to", "/x", "--format", "csv"]) == 2
    assert run(["maintain", "compact", "--target-size", "huge"]) == 2
    assert jobs.asked == []


@pytest.mark.parametrize(
    ("command", "option", "message"),
    [
        (["merge"], ["--spark-conf", "bad"], "'bad' is not a Spark setting; write NAME=VALUE"),
        (["rebuild"], ["--spark-conf", "a=1", "--spark-conf", "a=2"], "Spark setting 'a' is given twice"),
        (["export", "orders", "--to", "/x"], ["--option", "uri"], "'uri' is not a target's option; write NAME=VALUE"),
    ],
)
def test_a_malformed_assignment_is_refused_before_a_node_is_asked(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], command: list[str], option: list[str], message: str
) -> None:
    nobody = [] if command == ["rebuild"] else ["--bootstrap", f"127.0.0.1:{free_port()}"]

    assert run(["maintain", *command, *option, *nobody]) == 2

    assert message in capsys.readouterr().err
    assert jobs.asked == []


def rebuilt(*, missing: bool) -> RebuildReport:
    partition = RebuiltPartition(
        partition=0,
        log_start_offset=20,
        next_offset=30,
        durable_end=30,
        lease_epoch=1,
        generation=0,
        epochs=(),
        segments=(),
        ranges=(),
    )
    topic = RebuiltTopic(name="orders", topic_id=UUID(int=1), created_at_ms=0, config={}, partitions=(partition,))
    return RebuildReport(
        metadata=RebuiltMetadata(topics=(topic,), wal_objects=(), next_producer_id=0, wal_agent_id=""),
        missing=[MissingOffsets(topic="orders", partition=0, gap=Gap(10, 20))] if missing else [],
        damaged=[Damaged(key="segments/x", problem="is damaged")] if missing else [],
    )


def test_rebuild_refuses_a_log_with_gaps_and_restores_it_when_told(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from streamhouse.cli import maintain_rebuild

    monkeypatch.setattr(maintain_rebuild, "rebuild", jobs.run)
    (tmp_path / "objects").mkdir()
    place = ("--data-dir", str(tmp_path))
    jobs.answer = rebuilt(missing=True)

    assert run(["maintain", "rebuild", *place]) == 1
    shown = capsys.readouterr()
    assert "missing: orders/0 offsets 10 to 19" in shown.out
    assert "damaged and left out: segments/x: is damaged" in shown.out
    assert "nothing was restored" in shown.err
    assert not (tmp_path / "metadata.db").exists()

    assert run(["maintain", "rebuild", *place, "--accept-gaps"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "restored 1 topic"
    assert run(["maintain", "rebuild", *place, "--accept-gaps"]) == 1
    assert "the metadata store has topics already, 'orders' among them" in capsys.readouterr().err


def test_rebuild_binds_partitions_to_the_agent_of_the_directory_that_has_a_wal(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from streamhouse.cli import maintain_rebuild

    monkeypatch.setattr(maintain_rebuild, "rebuild", jobs.run)
    jobs.answer = rebuilt(missing=False)
    (tmp_path / "objects").mkdir()
    (tmp_path / "agent-id").write_text("agent-7\n")
    place = ("--data-dir", str(tmp_path), "--dry-run")

    run(["maintain", "rebuild", *place])
    (tmp_path / "wal" / f"{1:020d}.wal").touch()
    run(["maintain", "rebuild", *place])
    run(["maintain", "rebuild", *place, "--wal-agent", "other"])

    assert [job.wal_agent_id for job in jobs.asked] == ["", "agent-7", "other"]
    assert jobs.asked[0].bucket.url == (tmp_path / "objects").as_uri()


def test_a_bucket_that_is_not_there_is_not_made(jobs: Jobs, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["maintain", "rebuild", "--data-dir", str(tmp_path / "nowhere")]) == 2
    assert "there is no object store" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_without_pyspark_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)

    assert run(["maintain", "compact"]) == 1

    assert "in a checkout of StreamHouse: pip install '.[spark]'" in capsys.readouterr().err
