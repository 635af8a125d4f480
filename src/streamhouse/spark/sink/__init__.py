"""The exactly-once sink: tasks stage record batches as objects, the commit has them adopted into the log."""

from streamhouse.spark.sink.writers import batch_writer, stream_writer

__all__ = ["batch_writer", "stream_writer"]
