"""What a node leaves behind: the rows and objects of its stores, read past the node, and whether they agree."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import asyncpg
import boto3

from services.seaweed import S3Bucket

# I3: committed ranges are contiguous and disjoint, and their epochs never decrease.
_SEAMS = """
    SELECT topic, partition_id, base_offset, previous_end, epoch, previous_epoch FROM (
        SELECT topic, partition_id, base_offset, epoch,
               lag(end_offset) OVER log AS previous_end, lag(epoch) OVER log AS previous_epoch
        FROM segments WINDOW log AS (PARTITION BY topic_id, partition_id ORDER BY base_offset)
    ) AS ranges
    WHERE previous_end <> base_offset OR previous_epoch > epoch
"""
# The committed end of a partition is where its last segment ends, and its start is not before its first.
_ENDS = """
    SELECT p.topic, p.partition_id, p.log_start_offset, p.high_watermark, min(s.base_offset), max(s.end_offset)
    FROM partitions p JOIN segments s ON s.topic_id = p.topic_id AND s.partition_id = p.partition_id
    GROUP BY p.topic, p.partition_id, p.log_start_offset, p.high_watermark
    HAVING max(s.end_offset) <> p.high_watermark OR min(s.base_offset) > p.log_start_offset
"""
_SEGMENTS = """
    SELECT topic, partition_id, base_offset, end_offset, size_bytes, object_key, epoch FROM segments
    ORDER BY topic, partition_id, base_offset
"""
_LOG_PREFIXES = ("segments/", "wal/")


class Segment(NamedTuple):
    topic: str
    partition: int
    base_offset: int
    end_offset: int
    size_bytes: int
    object_key: str
    epoch: int


class Storage(Protocol):
    """Where one node keeps what outlives it."""

    options: Sequence[str]
    """What `serve` must be told to use it."""

    def query(self, sql: str) -> list[tuple[Any, ...]]: ...

    def object_sizes(self) -> dict[str, int]:
        """Of the objects that records are in."""

    def read_object(self, key: str) -> bytes: ...

    def write_object(self, key: str, content: bytes | None) -> None:
        """Put other bytes in an object's place; None removes it."""


class EmbeddedStorage:
    """SQLite and a directory, both under the data directory."""

    def __init__(self, data_dir: Path) -> None:
        self.options: Sequence[str] = ()
        self._database = data_dir / "metadata.db"
        self._objects = data_dir / "objects"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self._database, timeout=30)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def object_sizes(self) -> dict[str, int]:
        sizes = {}
        # Not by Path.rglob, which fails when a directory is deleted while we look.
        for directory, _, names in os.walk(self._objects):
            for path in (Path(directory, name) for name in names if name.endswith(".strm")):
                with suppress(FileNotFoundError):
                    sizes[str(path.relative_to(self._objects))] = path.stat().st_size
        return sizes

    def read_object(self, key: str) -> bytes:
        return (self._objects / key).read_bytes()

    def write_object(self, key: str, content: bytes | None) -> None:
        path = self._objects / key
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)


def service_options(dsn: str, bucket: S3Bucket, endpoint: str) -> tuple[str, ...]:
    return (
        "--metadata", dsn,
        "--objects", f"{bucket.url}/log",
        "--s3-endpoint", endpoint,
        "--s3-region", bucket.region,
        "--s3-access-key-id", bucket.access_key_id,
        "--s3-secret-access-key", bucket.secret_access_key,
    )  # fmt: skip


class ServiceStorage:
    """PostgreSQL and S3. `endpoint` and `dsn` may lead the node over a proxy; the test itself goes straight."""

    def __init__(self, dsn: str, bucket: S3Bucket, *, node_dsn: str = "", node_endpoint: str = "") -> None:
        self.options: Sequence[str] = service_options(node_dsn or dsn, bucket, node_endpoint or bucket.endpoint)
        self._dsn = dsn
        self._bucket = bucket.name
        self._client = boto3.client(
            "s3",
            endpoint_url=bucket.endpoint,
            region_name=bucket.region,
            aws_access_key_id=bucket.access_key_id,
            aws_secret_access_key=bucket.secret_access_key,
        )

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        async def run() -> list[tuple[Any, ...]]:
            connection = await asyncpg.connect(self._dsn)
            try:
                return [tuple(row) for row in await connection.fetch(sql)]
            finally:
                await connection.close()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, run()).result()

    def object_sizes(self) -> dict[str, int]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix="log/")
        found = [item for page in pages for item in page.get("Contents", ())]
        sizes = {item["Key"].removeprefix("log/"): item["Size"] for item in found}
        return {key: size for key, size in sizes.items() if key.startswith(_LOG_PREFIXES)}

    def read_object(self, key: str) -> bytes:
        content: bytes = self._client.get_object(Bucket=self._bucket, Key=f"log/{key}")["Body"].read()
        return content

    def write_object(self, key: str, content: bytes | None) -> None:
        if content is None:
            self._client.delete_object(Bucket=self._bucket, Key=f"log/{key}")
        else:
            self._client.put_object(Bucket=self._bucket, Key=f"log/{key}", Body=content)


def segments_of(storage: Storage, topic: str | None = None) -> list[Segment]:
    segments = [Segment(*row) for row in storage.query(_SEGMENTS)]
    return [segment for segment in segments if topic in (None, segment.topic)]


def committed_records(storage: Storage, topic: str) -> int:
    return sum(segment.end_offset - segment.base_offset for segment in segments_of(storage, topic))


def assert_rows_and_objects_agree(storage: Storage) -> None:
    """I3: the log has no seams. I7: every row has its object, with the right size. Rows are read before objects, which
    are there before their rows."""
    assert storage.query(_SEAMS) == [], "seams in the log (topic, partition, base, previous end, epoch, previous epoch)"
    assert storage.query(_ENDS) == [], "partitions that do not end where their segments end"
    segments = segments_of(storage)
    sizes = storage.object_sizes()
    for segment in segments:
        assert sizes.get(segment.object_key) == segment.size_bytes, f"row and object disagree: {segment}"
