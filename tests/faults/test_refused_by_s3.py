"""A bucket that is not there and keys that are not right: said in our words, at the start and while a node runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from faults.sweep import BRISK
from faults.workload import Workload
from node.process import Node, NodeDied
from node.storage import service_options
from node.wait import eventually
from services.seaweed import SECRET_ACCESS_KEY, S3Bucket, SeaweedServer
from streamhouse.cli.main import run

WRONG = {
    "there is no bucket 'no-such-bucket' at http://": {"name": "no-such-bucket"},
    "S3 refuses these keys: it does not know the access key id": {"access_key_id": "nobody"},
    "S3 refuses these keys: the secret does not belong": {"secret_access_key": "hunter2"},
}


def s3_flags(bucket: S3Bucket) -> list[str]:
    return [
        f"--objects={bucket.url}",
        f"--s3-endpoint={bucket.endpoint}",
        f"--s3-access-key-id={bucket.access_key_id}",
        f"--s3-secret-access-key={bucket.secret_access_key}",
    ]


@pytest.mark.parametrize("said", WRONG)
def test_a_node_that_is_refused_at_its_start_says_why_and_what_to_do(
    data_dir: Path, s3_bucket: S3Bucket, said: str
) -> None:
    with pytest.raises(NodeDied) as died, Node(data_dir, *s3_flags(replace(s3_bucket, **WRONG[said]))):
        pass

    assert died.value.exit_code == 1
    assert died.value.stderr.splitlines()[-1].startswith(f"error: {said}")
    for secret in (SECRET_ACCESS_KEY, "hunter2", "Traceback", "Debug source"):
        assert secret not in died.value.stderr


@pytest.mark.parametrize("said", WRONG)
def test_a_command_that_is_refused_says_the_same(
    s3_bucket: S3Bucket, capsys: pytest.CaptureFixture[str], said: str
) -> None:
    assert run(["segment", "list", *s3_flags(replace(s3_bucket, **WRONG[said]))]) == 1

    printed = capsys.readouterr().err
    assert printed.startswith(f"error: {said}")
    assert printed.count("\n") == 1


def test_a_bucket_that_goes_away_under_a_node_is_named_in_its_log(
    data_dir: Path, postgres_dsn: str, s3_server: SeaweedServer
) -> None:
    bucket = s3_server.create_bucket()
    options = service_options(postgres_dsn, bucket, bucket.endpoint)
    with Node(data_dir, *BRISK, *options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        s3_server.delete_bucket(bucket)
        workload.send(100)
        eventually(lambda: f"there is no bucket {bucket.name!r} at" in node.stderr(), "what is wrong in the log")
        node.kill9()
