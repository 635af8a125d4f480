"""The object stores that the suite runs over, each opened afresh and able to be opened a second time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.clock import ManualClock
from services.seaweed import S3Bucket
from streamhouse.objects.faulty import FaultyStore
from streamhouse.objects.local import LocalStore
from streamhouse.objects.measured import measured
from streamhouse.objects.memory import MemoryStore
from streamhouse.objects.open import open_store
from streamhouse.objects.s3 import S3Options
from streamhouse.objects.store import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStoreKind:
    """`open` gives a store over the same objects each time, as another process would have it."""

    open: Callable[[], Coroutine[Any, Any, ObjectStore]]
    clock: ManualClock
    clock_is_ours: bool = True


def local_kind(directory: Path) -> ObjectStoreKind:
    clock = ManualClock()

    async def open_local() -> ObjectStore:
        return LocalStore(directory, clock)

    return ObjectStoreKind(open=open_local, clock=clock)


def memory_kind() -> ObjectStoreKind:
    clock = ManualClock()
    store = MemoryStore(clock)

    async def open_memory() -> ObjectStore:
        return store

    return ObjectStoreKind(open=open_memory, clock=clock)


def faulty_kind() -> ObjectStoreKind:
    clock = ManualClock()
    store = MemoryStore(clock)

    async def open_faulty() -> ObjectStore:
        return FaultyStore(store, clock)

    return ObjectStoreKind(open=open_faulty, clock=clock)


def measured_kind() -> ObjectStoreKind:
    clock = ManualClock()
    store = MemoryStore(clock)

    async def open_measured() -> ObjectStore:
        return measured(store)

    return ObjectStoreKind(open=open_measured, clock=clock)


def s3_kind(bucket: S3Bucket, prefix: str = "some/prefix") -> ObjectStoreKind:
    clock = ManualClock()

    async def open_s3() -> ObjectStore:
        return await open_store(f"{bucket.url}/{prefix}", clock, s3_options(bucket))

    return ObjectStoreKind(open=open_s3, clock=clock, clock_is_ours=False)


def s3_options(bucket: S3Bucket) -> S3Options:
    return S3Options(
        endpoint=bucket.endpoint,
        region=bucket.region,
        access_key_id=bucket.access_key_id,
        secret_access_key=bucket.secret_access_key,
    )
