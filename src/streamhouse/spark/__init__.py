"""Topics as Spark tables: needs the `spark` extra."""
