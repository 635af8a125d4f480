"""What the parts of a node are told, made from its settings."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote, urlsplit

from streamhouse.model.settings import Settings
from streamhouse.objects.s3 import S3Options


def is_shared(settings: Settings) -> bool:
    """Whether other agents may be on the same metadata."""
    return settings.metadata.startswith("postgres")


def metadata_url(settings: Settings) -> str:
    return settings.metadata or f"sqlite:{quote(settings.data_dir)}/metadata.db"


def objects_url(settings: Settings) -> str:
    return settings.objects or f"file:{quote(settings.data_dir)}/objects"


_TOPIC_SETTINGS = {
    "max.message.bytes": "max_message_bytes",
    "retention.ms": "retention_ms",
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_age",
    "streamhouse.durability": "durability",
}
"""The topic configs that are settings of the node, and which."""


def node_defaults(settings: Settings) -> dict[str, str]:
    """What the settings say of topic configs."""
    values = {config: str(getattr(settings, name)) for config, name in _TOPIC_SETTINGS.items()}
    return {**values, "streamhouse.durability": settings.durability or "wal"}


def given_defaults(given: Collection[str]) -> frozenset[str]:
    """The topic configs among the settings that were given."""
    return frozenset(config for config, name in _TOPIC_SETTINGS.items() if name in given)


def group_defaults(settings: Settings) -> dict[str, str]:
    """What the settings say of group configs."""
    return {
        "consumer.heartbeat.interval.ms": str(settings.group_consumer_heartbeat_interval),
        "consumer.session.timeout.ms": str(settings.group_consumer_session_timeout),
    }


def is_sent_in_the_clear(settings: Settings) -> bool:
    """Whether what goes to the object store leaves this machine, and anybody on the way can read it."""
    endpoint = urlsplit(settings.s3_endpoint)
    is_here = endpoint.hostname in ("localhost", "127.0.0.1", "::1")
    return settings.objects.startswith("s3:") and endpoint.scheme == "http" and not is_here


def s3_options(settings: Settings) -> S3Options:
    return S3Options(
        endpoint=settings.s3_endpoint,
        region=settings.s3_region or "us-east-1",
        access_key_id=settings.s3_access_key_id,
        secret_access_key=settings.s3_secret_access_key,
        session_token=settings.s3_session_token,
        path_style=settings.s3_path_style,
    )
