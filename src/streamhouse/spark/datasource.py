"""`format("streamhouse")`: what Spark asks for a schema, a reader or a writer."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType


class StreamHouseDataSource(DataSource):
    """Readers and writers are imported when asked for: Spark makes this object in many short-lived processes."""

    @classmethod
    def name(cls) -> str:
        return "streamhouse"

    def schema(self) -> StructType:
        from streamhouse.spark.source.options import SourceOptions
        from streamhouse.spark.source.rows import row_type

        return row_type(include_headers=SourceOptions.parse(self.options).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        from streamhouse.spark.source.batch_reader import BatchReader
        from streamhouse.spark.source.options import SourceOptions

        return BatchReader(SourceOptions.parse(self.options).for_batch(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from streamhouse.spark.source.options import SourceOptions
        from streamhouse.spark.source.stream_reader import StreamReader

        return StreamReader(SourceOptions.parse(self.options).for_stream(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from streamhouse.spark.sink import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from streamhouse.spark.sink import stream_writer

        return stream_writer(self.options, schema, overwrite)
