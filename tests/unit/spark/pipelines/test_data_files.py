from __future__ import annotations

import pytest

from streamhouse.spark.pipelines.sinks.data_files import directory_at


def test_a_server_for_s3_that_the_environment_names_is_the_one_that_files_are_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the lake libraries have it, which then look there for the files."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    options = directory_at("s3://lake/orders", {}).s3
    assert options is not None
    assert (options.endpoint, options.region) == ("http://127.0.0.1:9000", "eu-central-1")

    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9001")
    options = directory_at("s3://lake/orders", {"aws_endpoint_url": "https://elsewhere"}).s3
    assert options is not None
    assert options.endpoint == "https://elsewhere", "an option goes first"
