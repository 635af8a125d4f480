"""What of the pages is not run, with its reason, and what is run unseen: nobody adds to it without these lists."""

from __future__ import annotations

from page_parts.blocks import read_blocks
from page_parts.listing import PAGES

NOT_RUN = {
    "README.md": [
        "tests/e2e/test_demo.py runs the demo, and this is run by make test",
        "installs from the network; the tests run what it installs",
    ],
    "docs/getting-started.md": ["the tests run in the environment that this makes"],
    "CONTRIBUTING.md": ["the tests run in the environment that this makes"],
    "docs/benchmarks.md": ["twenty minutes; tests/e2e/test_bench_smoke.py runs it for seconds"],
    "docs/cli.md": ["nothing in these pages damages a log; tests/unit/cli/test_cluster.py does"],
    "docs/configuration.md": [
        "Apache Kafka's tools come by Maven; make test-peers runs them, tests/apache_kafka/test_tools.py"
    ],
    "docs/declarative-pipelines.md": [
        "an excerpt; `make test-long` runs the whole example: tests/long/test_declarative.py",
        "starts a second Spark beside the pages' own; `make test-long` runs it: tests/long/test_declarative.py",
    ],
    "docs/grpc.md": ["grpcurl is in no package of Debian 12; the programs below make the same calls"],
    "docs/metrics.md": ["installs from the network; the tests have it installed"],
    "docs/operations.md": [
        "needs a container engine; tests/e2e/test_compose.py runs these nodes without one",
    ],
    "docs/spark.md": [
        "installs from the network; the tests have it installed",
        "there is no such server here; `make test-long` runs one: tests/long/test_connect.py",
    ],
    "docs/testing.md": [
        "hours of tests; `make test-long` runs these, and `make test` a few moments of each",
        "an hour and more of faults; `make test` runs them for moments",
        "hours of schedules; `make test` runs the first of them",
        "the tests have no other broker, and run on our own in `make test`",
    ],
    "examples/README.md": ["installs from the network; the tests have it installed"],
}

_CLUSTER = [
    "export STREAMHOUSE_METADATA=postgresql://user@host/db STREAMHOUSE_OBJECTS=s3://bucket/prefix",
    "export STREAMHOUSE_LEASE_TTL=3s STREAMHOUSE_LEASE_RENEWAL=1s STREAMHOUSE_HEARTBEAT=1s"
    " STREAMHOUSE_LIVENESS=4s STREAMHOUSE_REBALANCE=1s",
    "streamhouse agent --agent-id a1 --data-dir ./a1",
    "streamhouse agent --agent-id a2 --data-dir ./a2"
    " --kafka-port 9192 --http-port 8180 --grpc-port 50151 --flume-port 9194",
    "unset STREAMHOUSE_METADATA STREAMHOUSE_OBJECTS",
]
_SHOWN = 80
_KILL = "kill -9 '%?id a2'"
_UPLOAD = "streamhouse serve"
"""Of a node that runs: it is started again, and what it has is in segments, as after a minute."""
RUN_FIRST = {
    "docs/cli.md": [
        [
            *_CLUSTER,
            "for each in 0 1 2; do seq 100 | streamhouse produce orders --partition $each; done",
            "streamhouse partition move orders 0 --to a1",
        ],
        [
            "streamhouse topic alter orders --config streamhouse.durability=wal",
            "streamhouse partition move orders 0 --to a2",
            "streamhouse produce orders --partition 0 --message one",
            _KILL,
        ],
        [_UPLOAD],
    ],
    "docs/cluster.md": [
        [
            *_CLUSTER,
            "streamhouse topic create events --partitions 4 --config streamhouse.durability=wal",
            "streamhouse partition move events 3 --to a2",
            "streamhouse produce events --partition 3 --message one",
            _KILL,
        ]
    ],
    "docs/maintenance.md": [[_UPLOAD]],
    "docs/operations.md": [
        [
            "streamhouse agent --agent-id a1 --data-dir ./a1"
            " --metadata postgresql://user@host/db --objects s3://bucket/prefix",
            "streamhouse topic create orders --if-not-exists",
        ]
    ],
}
"""Clusters and what is killed in them, and what takes time. What a reader of one node needs, the page makes."""


NOT_COMMANDS = {
    "README.md": ["mermaid: flowchart LR"],
    "docs/getting-started.md": ["text: streamhouse-data/"],
    "ARCHITECTURE.md": [
        "text: cli | testing                    commands; a node inside a test",
        "text: log_start_offset <= committed_end <= high_watermark <= next_offset",
    ],
    "docs/flume.md": ["text: Request:  [Size:4][APIKey:2][RequestID:4][Payload]"],
    "docs/formats.md": [
        "text: topics/{topic id}/{version}-{unique}.json",
        "text: segments/{topic id}/{partition}/{base offset}-{epoch}-{unique}.strm",
    ],
    "docs/kafka-messages.md": ["text: API_KEY, MIN_VERSION, MAX_VERSION, FLEXIBLE_SINCE"],
    "docs/metrics.md": ['json: {"time": "2026-01-01T00:00:00.000Z", "level": "warning", "logger": …'],
    "docs/spark.md": ["text: ┌───────────── where are the records? what was staged? ─────────────┐"],
    "docs/wal-object-format.md": ["text: wal/{agent id}/{time}-{unique}.shwo"],
}
"""Pictures, layouts and formats, by their first lines. What a program says stands below the command that makes it say
so; but no page makes a node log a line, of which tests/unit/runtime/test_logs.py knows what it has."""


def test_what_is_not_run_is_known() -> None:
    marked = {page: [block.not_run for block in read_blocks(page) if block.not_run is not None] for page in PAGES}
    assert {page: reasons for page, reasons in marked.items() if reasons} == NOT_RUN


def test_what_is_run_and_not_shown_is_known() -> None:
    hidden = {
        page: [
            [line.strip() for line in block.run_first.splitlines()]
            for block in read_blocks(page)
            if block.run_first is not None
        ]
        for page in PAGES
    }
    assert {page: commands for page, commands in hidden.items() if commands} == RUN_FIRST


def test_what_no_program_said_is_known() -> None:
    pictures = {
        page: [
            f"{block.language}: {_beginning(block.text)}"
            for block in read_blocks(page)
            if block.language in ("json", "mermaid", "text")
        ]
        for page in PAGES
    }
    assert {page: blocks for page, blocks in pictures.items() if blocks} == NOT_COMMANDS


def _beginning(text: str) -> str:
    first = text.splitlines()[0].strip()
    return first if len(first) <= _SHOWN else f"{first[:_SHOWN].rpartition(' ')[0]} …"


def test_whoever_leaves_out_nearly_all_of_a_page_would_be_seen() -> None:
    blocks = [block for page in PAGES for block in read_blocks(page)]
    assert sum(block.not_run is None for block in blocks) > 0.8 * len(blocks)
