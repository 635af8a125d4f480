"""The sink's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamhouse.format.compression import Codec
from streamhouse.model.errors import InvalidConfig
from streamhouse.model.names import check_sink_id, check_topic_name
from streamhouse.spark.options import CONNECTION_OPTIONS, Connection, Options

_KNOWN = (*CONNECTION_OPTIONS, "topic", "sinkId", "batchId", "presign", "compression.type")
# What Spark itself adds to the options of a streaming sink.
_SPARKS_OWN = ("path", "checkpointLocation", "queryName")
_CODECS = {codec.name.lower(): codec for codec in Codec}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """`topic` is empty where each row names its own; `sink_id` and `batch_id` are None where Spark is to say."""

    connection: Connection
    topic: str
    sink_id: str | None
    batch_id: int | None
    presign: bool
    codec: Codec

    @staticmethod
    def parse(given: Mapping[str, str]) -> SinkOptions:
        options = Options(given)
        options.check_known((*_KNOWN, *_SPARKS_OWN))
        topic = options.text("topic")
        return SinkOptions(
            connection=Connection.parse(options),
            topic=check_topic_name(topic) if topic else "",
            sink_id=check_sink_id(options.text("sinkId")) if options.has("sinkId") else None,
            batch_id=_batch_id(options.text("batchId")) if options.has("batchId") else None,
            presign=options.boolean("presign", False),
            codec=_CODECS[options.choice("compression.type", "lz4", tuple(_CODECS))],
        )


def _batch_id(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise InvalidConfig(f"option 'batchId' cannot be {text[:40]!r}", hint="it is a whole number from 0 on")
    return int(text)
