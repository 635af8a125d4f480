from collections.abc import Sequence

from streamhouse.format.columns import Columns, Section

def decode_sections(sections: Sequence[Section], start_offset: int, end_offset: int) -> Columns: ...
