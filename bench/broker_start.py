"""How long a test waits for `streamhouse.testing.Broker()`: measured in a process that has imported nothing yet."""

from __future__ import annotations

import json
import statistics
import sys
import time

HUNG_SECONDS = 30


def main(starts: int) -> None:
    began = time.perf_counter()
    from streamhouse.testing import Broker

    imported = time.perf_counter()
    from confluent_kafka import Producer

    ready, first_record, stopped = [], [], []
    for _ in range(starts):
        start = time.perf_counter()
        with Broker() as broker:
            ready.append(time.perf_counter() - start)
            producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
            producer.produce("first", b"record")
            if producer.flush(HUNG_SECONDS):
                raise SystemExit("the first record was not acknowledged")
            first_record.append(time.perf_counter() - start)
            leaving = time.perf_counter()
        stopped.append(time.perf_counter() - leaving)
    result = {
        "import_seconds": imported - began,
        "first_start_seconds": ready[0],
        "next_start_seconds": statistics.median(ready[1:]),
        "first_record_seconds": statistics.median(first_record),
        "stop_seconds": statistics.median(stopped),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(int(sys.argv[1]))
