"""The compiled kernel and its twin, as two parameters of one suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from streamhouse.format import _decode, _encode, _scan, decode_twin, encode_twin, kernel, scan_twin


class Kernel(NamedTuple):
    ColumnDecoder: Callable[..., Any]
    decode_sections: Callable[..., Any]
    encode_rows: Callable[..., Any]
    refused_records: Callable[..., Any]
    scan_entries: Callable[..., Any]
    scan_run: Callable[..., Any]
    survey_times: Callable[..., Any]


COMPILED = Kernel(
    _decode.ColumnDecoder,
    _decode.decode_sections,
    _encode.encode_rows,
    _decode.refused_records,
    _scan.scan_entries,
    _scan.scan_run,
    _decode.survey_times,
)
TWIN = Kernel(
    decode_twin.ColumnDecoder,
    decode_twin.decode_sections,
    encode_twin.encode_rows,
    decode_twin.refused_records,
    scan_twin.scan_entries,
    scan_twin.scan_run,
    decode_twin.survey_times,
)

both_kernels = pytest.mark.parametrize("chosen", [pytest.param(COMPILED, id="compiled"), pytest.param(TWIN, id="twin")])


@contextmanager
def using(chosen: Kernel) -> Iterator[None]:
    """Everything above the kernel runs on the chosen one."""
    with patch.multiple(kernel, **chosen._asdict()):
        yield
