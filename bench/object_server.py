"""A real S3 server beside the node, the one that the tests use, and how fast it hands out bytes by itself."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import obstore
from obstore.store import S3Store

from bench.real_services import running, service_module

OBJECT_BYTES = 1 << 20
READERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectServer:
    endpoint: str
    bucket: str
    region: str
    access_key_id: str
    secret_access_key: str

    def flags(self, prefix: str) -> list[str]:
        """What `streamhouse serve` needs to keep its objects there."""
        return [
            *("--objects", f"s3://{self.bucket}/{prefix}"),
            *("--s3-endpoint", self.endpoint),
            *("--s3-region", self.region),
            *("--s3-access-key-id", self.access_key_id),
            *("--s3-secret-access-key", self.secret_access_key),
        ]

    def store(self, prefix: str) -> S3Store:
        """The same place, past every node."""
        return S3Store(
            self.bucket,
            prefix=prefix,
            endpoint=self.endpoint,
            region=self.region,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )

    def bytes_per_second(self, size_bytes: int) -> float:
        """Plain GETs of objects as large as a segment: what the server can do on this machine, without a broker."""
        store = self.store("speed")
        content = os.urandom(OBJECT_BYTES)
        names = [str(index) for index in range(max(READERS, size_bytes // OBJECT_BYTES))]
        with ThreadPoolExecutor(READERS) as readers:
            list(readers.map(lambda name: obstore.put(store, name, content), names))
            start = time.perf_counter()
            total = sum(readers.map(lambda name: len(obstore.get(store, name).bytes()), names))
            return total / (time.perf_counter() - start)


@contextmanager
def object_server() -> Iterator[ObjectServer]:
    with running(service_module("seaweed").seaweed_server()) as server:
        bucket = server.create_bucket()
        yield ObjectServer(
            endpoint=bucket.endpoint,
            bucket=bucket.name,
            region=bucket.region,
            access_key_id=bucket.access_key_id,
            secret_access_key=bucket.secret_access_key,
        )
