"""One partition's log: leader, WAL, uploader, reader, cache, recovery."""
