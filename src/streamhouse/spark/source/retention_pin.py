"""A query's hold on the records that it has not read yet, against retention."""

from __future__ import annotations

import logging
import threading

from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import NotFound, Unavailable
from streamhouse.runtime.entropy import new_uuid
from streamhouse.spark.source.positions import Offsets
from streamhouse.wire.http.planning import PartitionOffset, PinRequest

logger = logging.getLogger(__name__)


class RetentionPin:
    """Renewed while the query runs, however long a micro-batch takes, and left to expire after that: a query that is
    started again within the limit finds its records."""

    def __init__(self, client: PlanningClient, ttl_ms: int) -> None:
        """The client must be the pin's own: it is used on a thread."""
        self._client = client
        self._ttl_ms = ttl_ms
        self._pin_id = f"spark-{new_uuid()}"
        self._offsets: Offsets = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, offsets: Offsets) -> None:
        """Keep what is at and after these; what was held before is let go."""
        if offsets == self._offsets:
            return
        with self._lock:
            self._offsets = dict(offsets)
            try:
                self._pin()
            except NotFound as problem:
                logger.warning("the records of a topic that is gone cannot be kept: %s", problem)
        if self._thread is None:
            self._thread = threading.Thread(target=self._renew, name="retention-pin", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self._client.close()

    def _renew(self) -> None:
        while not self._stopped.wait(self._ttl_ms / 3000):
            try:
                with self._lock:
                    self._pin()
            except (Unavailable, NotFound) as problem:
                logger.warning("the pin against retention was not renewed: %s", problem)

    def _pin(self) -> None:
        offsets = [
            PartitionOffset(topic=topic, partition=partition, offset=offset)
            for (topic, partition), offset in sorted(self._offsets.items())
        ]
        self._client.pin(PinRequest(pin_id=self._pin_id, ttl_ms=self._ttl_ms, offsets=offsets))
