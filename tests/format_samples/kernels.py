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
    scan_entries: Callable[..., Any]
    scan_run: Callable[..., Any]


COMPILED = Kernel(
    _decode.ColumnDecoder, _decode.decode_sections, _encode.encode_rows, _scan.scan_entries, _scan.scan_run
)
TWIN = Kernel(
    decode_twin.ColumnDecoder,
    decode_twin.decode_sections,
    encode_twin.encode_rows,
    scan_twin.scan_entries,
    scan_twin.scan_run,
)

both_kernels = pytest.mark.parametrize("chosen", [pytest.param(COMPILED, id="compiled"), pytest.param(TWIN, id="twin")])


@contextmanager
def using(chosen: Kernel) -> Iterator[None]:
    """Everything above the kernel runs on the chosen one."""
    with patch.multiple(kernel, **chosen._asdict()):
        yield
