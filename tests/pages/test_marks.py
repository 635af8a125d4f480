"""What of the pages is not run, all of it with its reason: nobody adds to it without this list."""

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
        "an excerpt; tests/long/test_declarative.py runs the whole example",
        "starts a Spark server of its own; tests/long/test_declarative.py runs it",
    ],
    "docs/grpc.md": ["grpcurl is in no package of Debian; the programs below make the same calls"],
    "docs/maintenance.md": ["needs a REST catalog; tests/spark/test_maintain_export.py has one of its own"],
    "docs/metrics.md": ["installs from the network; the tests have it installed"],
    "docs/operations.md": [
        "needs a container engine; tests/e2e/test_compose.py runs these nodes without one",
        "writes 256 MiB; the figures below are of such a run",
    ],
    "docs/spark.md": [
        "installs from the network; the tests have it installed",
        "there is no such server here; tests/long/test_connect.py runs one",
    ],
    "docs/testing.md": [
        "tests of an hour or more, or of another broker",
        "tests of an hour or more, or of another broker",
        "tests of an hour or more, or of another broker",
        "tests of an hour or more, or of another broker",
    ],
    "examples/README.md": ["installs from the network; the tests have it installed"],
}


def test_what_is_not_run_is_known() -> None:
    marked = {page: [block.not_run for block in read_blocks(page) if block.not_run is not None] for page in PAGES}
    assert {page: reasons for page, reasons in marked.items() if reasons} == NOT_RUN


def test_whoever_leaves_out_nearly_all_of_a_page_would_be_seen() -> None:
    blocks = [block for page in PAGES for block in read_blocks(page)]
    assert sum(block.not_run is None for block in blocks) > 0.8 * len(blocks)
