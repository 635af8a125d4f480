"""Found by Spark through its name, so that `format("streamhouse")` works without registering anything."""

from streamhouse.spark.datasource import StreamHouseDataSource

__all__ = ["DefaultSource"]


class DefaultSource(StreamHouseDataSource):
    pass
