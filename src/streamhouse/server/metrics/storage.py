"""The log and the object store: WALs, segments, caches, memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamhouse.broker.broker import Broker
from streamhouse.log.block_cache import LoadingCache
from streamhouse.log.wal import Wal
from streamhouse.log.wal_measures import WalMeasures
from streamhouse.model.errors import StorageUnavailable
from streamhouse.server.metrics.exposition import Family, by_label, counter, gauge, histogram
from streamhouse.server.metrics.node import NodeMeasures


def wal_families(node: NodeMeasures, broker: Broker) -> Iterator[Family]:
    wals: dict[str, WalMeasures] = {
        "local": node.engine.wals.local.measures,
        "object": node.engine.wals.object.measures,
    }
    local, in_objects = broker.wal_states()
    yield by_label(
        "histogram",
        "streamhouse_wal_sync_seconds",
        "From handing the first batch of a group to a WAL until the group was durable.",
        "wal",
        {name: wal.seconds for name, wal in wals.items()},
    )
    yield by_label(
        "histogram",
        "streamhouse_wal_sync_batches",
        "Batches that became durable together.",
        "wal",
        {name: wal.batches for name, wal in wals.items()},
    )
    yield by_label(
        "histogram",
        "streamhouse_wal_sync_bytes",
        "Bytes that became durable together.",
        "wal",
        {name: wal.bytes for name, wal in wals.items()},
    )
    yield by_label(
        "counter",
        "streamhouse_wal_failures_total",
        "How often writing to a WAL had to be given up.",
        "wal",
        {name: wal.failures for name, wal in wals.items()},
    )
    yield by_label(
        "gauge",
        "streamhouse_wal_refusing",
        "1 while a WAL refuses appends, else 0.",
        "wal",
        {"local": _refuses(node.engine.wals.local), "object": _refuses(node.engine.wals.object)},
    )
    yield gauge("streamhouse_wal_files", "Files of the local WAL that are needed.", len(local.files) if local else 0)
    yield gauge(
        "streamhouse_wal_file_bytes",
        "Size of those files.",
        sum(file.size_bytes for file in local.files) if local else 0,
    )
    yield by_label(
        "gauge",
        "streamhouse_wal_unsynced_batches",
        "Batches that were appended and are not durable yet.",
        "wal",
        {"local": local.unsynced_batches if local else 0, "object": in_objects.gathered_batches},
    )


def _refuses(wal: Wal) -> bool:
    try:
        wal.check_writable()
    except StorageUnavailable:
        return True
    return False


def segment_families(node: NodeMeasures, broker: Broker) -> Iterator[Family]:
    uploader = node.engine.uploader
    measures = uploader.measures
    led = broker.led
    yield by_label(
        "counter",
        "streamhouse_segment_rolls_total",
        "Segments that were uploaded and registered, by why they were made then.",
        "reason",
        {**measures.rolls},
    )
    yield counter("streamhouse_segment_bytes_total", "Bytes of those segments.", measures.segment_bytes)
    yield counter("streamhouse_segment_records_total", "Records in them.", measures.records)
    yield histogram(
        "streamhouse_segment_upload_seconds",
        "From taking records out of memory until their segment was registered.",
        measures.seconds,
    )
    yield counter("streamhouse_upload_retries_total", "Uploads that had to be tried again.", measures.retries)
    yield gauge("streamhouse_uploads_waiting", "Partitions with enough for a segment and no worker.", uploader.waiting)
    yield gauge("streamhouse_uploads_under_way", "Segments that are being uploaded.", uploader.under_way)
    yield gauge(
        "streamhouse_led_high_watermarks",
        "Sum of the high watermarks of the partitions that this node leads.",
        sum(leader.high_watermark for leader in led),
    )
    yield gauge(
        "streamhouse_led_unuploaded_records",
        "Offsets of those partitions that are in no segment yet.",
        sum(leader.high_watermark - leader.committed_end for leader in led),
    )
    yield gauge(
        "streamhouse_oldest_unuploaded_seconds",
        "For how long the oldest of them have been in no segment.",
        max((leader.unuploaded_ms for leader in led), default=0) / 1000,
    )


def object_families(node: NodeMeasures) -> Iterator[Family]:
    objects = node.objects
    yield Family(
        "streamhouse_object_requests_total",
        "counter",
        "Requests to the object store; those that failed are worth a retry.",
        [
            ({"operation": operation, "result": result}, count)
            for operation in objects.answered
            for result, count in (("ok", objects.answered[operation]), ("failed", objects.failed[operation]))
        ],
    )
    yield by_label(
        "counter",
        "streamhouse_object_bytes_total",
        "Bytes to and from the object store.",
        "operation",
        {"put": objects.put_bytes, "get": objects.got_bytes},
    )
    yield by_label(
        "histogram",
        "streamhouse_object_seconds",
        "How long the object store took to answer.",
        "operation",
        {**objects.seconds},
    )


def memory_families(node: NodeMeasures, broker: Broker) -> Iterator[Family]:
    buffer, tails, reader = broker.buffer, node.engine.tail_memory, node.engine.reader
    caches: dict[str, LoadingCache[Any]] = {"blocks": reader.blocks, "indexes": reader.indexes}
    yield gauge("streamhouse_buffer_bytes", "Records not yet in the object store.", max(0, buffer.used_bytes))
    yield gauge("streamhouse_buffer_limit_bytes", "How many there may be.", buffer.limit_bytes)
    yield gauge("streamhouse_tail_bytes", "Records kept in memory after their upload.", tails.used_bytes)
    yield gauge("streamhouse_tail_limit_bytes", "How many there may be.", tails.limit_bytes)
    yield by_label(
        "counter",
        "streamhouse_cache_hits_total",
        "Reads of segments that the cache could answer.",
        "cache",
        {name: cache.hits for name, cache in caches.items()},
    )
    yield by_label(
        "counter",
        "streamhouse_cache_misses_total",
        "Those that the object store had to answer.",
        "cache",
        {name: cache.misses for name, cache in caches.items()},
    )
    yield by_label(
        "gauge",
        "streamhouse_cache_bytes",
        "What the cache holds.",
        "cache",
        {name: cache.used_bytes for name, cache in caches.items()},
    )
    yield by_label(
        "gauge",
        "streamhouse_cache_limit_bytes",
        "How much it may hold.",
        "cache",
        {name: cache.limit_bytes for name, cache in caches.items()},
    )
    yield histogram(
        "streamhouse_segment_read_seconds",
        "Reads of one partition from segments, from the cache or the object store.",
        broker.fetcher.segment_read_seconds,
    )
