"""One batch of records without headers that share a timestamp, made in one go: for doors that get records one by one
and append them at once, where going through columns would cost more than all the rest."""

from __future__ import annotations

try:
    from streamhouse.format._plain_batch import encode_plain_batch
except ImportError:
    from streamhouse.format.plain_batch_twin import encode_plain_batch

__all__ = ["PLAIN_RECORD_BYTES", "encode_plain_batch"]

PLAIN_RECORD_BYTES = 27
"""At most so much does a record take beside its key and its value: four numbers of up to five bytes, and three of
one."""
