"""A new cluster's id, in the form that Kafka's tools know: a UUID as 22 characters of URL-safe base64."""

from __future__ import annotations

from base64 import urlsafe_b64encode

from streamhouse.runtime.entropy import new_uuid


def new_cluster_id() -> str:
    return urlsafe_b64encode(new_uuid().bytes).rstrip(b"=").decode()
