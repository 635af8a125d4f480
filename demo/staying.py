"""After the show: orders go on flowing, for whoever looks at the console, until Ctrl-C."""

from __future__ import annotations

import signal
import threading

from rich.console import Console

from demo.cluster import Cluster
from demo.orders import make_orders
from demo.producing import OrderProducer

_ORDERS = 5_000
_PER_SECOND = 50


def stay(cluster: Cluster, topic: str, console: Console) -> int:
    """Returns how many more orders there were, all of them acknowledged."""
    stopping = threading.Event()
    # A handler and not KeyboardInterrupt: from here on Ctrl-C means a drain, wherever it comes.
    before = signal.signal(signal.SIGINT, lambda *_: stopping.set())
    try:
        console.print(f"orders go on flowing: look at {cluster.console} and end it with Ctrl-C")
        producer = OrderProducer(cluster.bootstrap, topic)
        return producer.send_until(stopping, make_orders(_ORDERS), _PER_SECOND)
    finally:
        signal.signal(signal.SIGINT, before)
