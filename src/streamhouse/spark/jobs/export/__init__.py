"""`maintain export`: topics as Parquet files, Delta or Iceberg tables; each target itself knows how far it has got."""
