from collections.abc import Iterable

from streamhouse.format.columns import Columns, Section

class ColumnDecoder:
    @property
    def stopped_at(self) -> int: ...
    def __init__(
        self,
        start_offset: int,
        end_offset: int,
        *,
        keys_only: bool = False,
        max_rows: int = ...,
        max_parts: int = ...,
    ) -> None: ...
    def add(self, section: Section) -> None: ...
    def finish(self) -> Columns: ...

def decode_sections(sections: Iterable[Section], start_offset: int, end_offset: int) -> Columns: ...
def survey_times(section: Section, start_offset: int, from_ms: int) -> tuple[tuple[int, int] | None, int]: ...
def refused_records(
    section: Section, needs_key: bool, oldest_ms: int, newest_ms: int, limit: int
) -> list[tuple[int, int | None]]: ...
