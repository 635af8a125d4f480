"""What a node's object store holds for sinks, looked at past the node."""

from __future__ import annotations

from services.seaweed import ACCESS_KEY_ID, SECRET_ACCESS_KEY
from streamhouse.client.planning import PlanningClient
from streamhouse.objects.blocking import blocking_store
from streamhouse.objects.s3 import S3Options


def staged_keys(endpoint: str) -> list[str]:
    with PlanningClient(endpoint) as client:
        location = client.cluster().objects
    keys = S3Options(
        endpoint=location.endpoint,
        region=location.region,
        access_key_id=ACCESS_KEY_ID,
        secret_access_key=SECRET_ACCESS_KEY,
        path_style=location.path_style,
    )
    store = blocking_store(location.url, keys if location.url.startswith("s3:") else None)
    return [item.key for item in store.list("staging")]
