"""A real broker inside a test: `with Broker() as broker`, or the pytest fixture `streamhouse_broker`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamhouse.testing.broker import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> object:
    """`Broker` is loaded when it is asked for: pytest imports this package in every run, for the plugin."""
    if name == "Broker":
        from streamhouse.testing.broker import Broker

        return Broker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
