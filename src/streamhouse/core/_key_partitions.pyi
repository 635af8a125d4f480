from streamhouse.model.buffer import Buffer

def key_partitions(
    offsets: Buffer,
    data: Buffer,
    validity: Buffer | None,
    count: int,
    partition_count: int,
    first: int,
    run_rows: int,
) -> bytes: ...
