"""What the parts of a node are told, made from its settings."""

from __future__ import annotations

from urllib.parse import quote

from streamhouse.model.settings import Settings
from streamhouse.objects.s3 import S3Options


def is_shared(settings: Settings) -> bool:
    """Whether other agents may be on the same metadata."""
    return settings.metadata.startswith("postgres")


def metadata_url(settings: Settings) -> str:
    return settings.metadata or f"sqlite:{quote(settings.data_dir)}/metadata.db"


def objects_url(settings: Settings) -> str:
    return settings.objects or f"file:{quote(settings.data_dir)}/objects"


def node_defaults(settings: Settings) -> dict[str, str]:
    """The topic configs that are settings of the node."""
    return {
        "max.message.bytes": str(settings.max_message_bytes),
        "retention.ms": str(settings.retention_ms),
        "segment.bytes": str(settings.segment_bytes),
        "segment.ms": str(settings.segment_age),
        "streamhouse.durability": settings.durability or "wal",
    }


def s3_options(settings: Settings) -> S3Options:
    return S3Options(
        endpoint=settings.s3_endpoint,
        region=settings.s3_region or "us-east-1",
        access_key_id=settings.s3_access_key_id,
        secret_access_key=settings.s3_secret_access_key,
        session_token=settings.s3_session_token,
        path_style=settings.s3_path_style,
    )
