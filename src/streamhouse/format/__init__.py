"""Bytes to stored things and back: batches, records, WAL entries, segments, object keys."""
