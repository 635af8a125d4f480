"""The loops that run per record or per WAL entry: compiled where that was possible, else their pure-Python twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamhouse.format.decode_twin import ColumnDecoder, decode_sections, refused_records, survey_times
    from streamhouse.format.encode_twin import encode_rows
    from streamhouse.format.scan_twin import scan_entries, scan_run

    COMPILED: bool
else:
    try:
        from streamhouse.format._decode import ColumnDecoder, decode_sections, refused_records, survey_times
        from streamhouse.format._encode import encode_rows
        from streamhouse.format._scan import scan_entries, scan_run

        COMPILED = True
    except ImportError:
        from streamhouse.format.decode_twin import ColumnDecoder, decode_sections, refused_records, survey_times
        from streamhouse.format.encode_twin import encode_rows
        from streamhouse.format.scan_twin import scan_entries, scan_run

        COMPILED = False

__all__ = [
    "COMPILED",
    "ColumnDecoder",
    "decode_sections",
    "encode_rows",
    "refused_records",
    "scan_entries",
    "scan_run",
    "survey_times",
]
