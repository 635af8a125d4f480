"""StreamHouse: Kafka on the wire, object storage underneath, Spark as the pipeline."""

__version__ = "0.1.0"
