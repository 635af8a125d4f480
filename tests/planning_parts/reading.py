"""Records by way of the planning API: pieces from their URLs, the tail from the node."""

from __future__ import annotations

import urllib.request

from streamhouse.client.planning import PlanningClient
from streamhouse.format.records import Record, decode_records
from streamhouse.format.segment import iter_blocks
from streamhouse.wire.http import planning as api

ALL = 2**62
PIECE_BYTES = 16 * 2**20


def question(topic: str, partition: int = 0, start: int = 0, end: int = ALL, **times: int) -> api.RangeQuestion:
    return api.RangeQuestion(topic=topic, partition=partition, start=start, end=end, **times)


def plan(
    client: PlanningClient, topic: str, partition: int = 0, start: int = 0, end: int = ALL, **options: int
) -> api.RangeAnswer:
    """With URLs."""
    piece_bytes = options.pop("piece_bytes", PIECE_BYTES)
    asked = question(topic, partition, start, end, **options)
    (answer,) = client.ranges([asked], piece_bytes=piece_bytes, presign=True)
    return answer


def read_plan(client: PlanningClient, topic: str, answer: api.RangeAnswer, partition: int = 0) -> list[Record]:
    """What the plan says, in its order."""
    records = [record for piece in answer.pieces for record in read_piece(piece)]
    return records + read_tail(client, topic, partition, answer.tail_start, answer.tail_end)


def read_piece(piece: api.Piece) -> list[Record]:
    blocks = list(iter_blocks(get_bytes(piece)))
    found = [record for block in blocks for record in decode_records(block)]
    assert len(found) == piece.record_count
    return [record for record in found if piece.start <= record.offset < piece.end]


def get_bytes(piece: api.Piece) -> bytes:
    assert piece.url is not None
    request = urllib.request.Request(piece.url, headers={"Range": f"bytes={piece.start_byte}-{piece.end_byte - 1}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 206
        content: bytes = answer.read()
    assert len(content) == piece.end_byte - piece.start_byte
    return content


def read_tail(client: PlanningClient, topic: str, partition: int, start: int, end: int) -> list[Record]:
    records: list[Record] = []
    while start < end:
        found = decode_records(client.tail(topic, partition, start, 1), start_offset=start)
        assert found, "a tail below its end brings something"
        records += [record for record in found if record.offset < end]
        start = found[-1].offset + 1
    return records
