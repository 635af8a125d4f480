"""The kernel must be the compiled one here: its twin would hide that it no longer compiles."""

from __future__ import annotations

from streamhouse.format import kernel


def test_the_kernel_was_compiled() -> None:
    assert kernel.COMPILED


def test_the_kernel_in_use_is_the_compiled_one() -> None:
    modules = {function.__module__ for function in (kernel.decode_sections, kernel.encode_rows, kernel.scan_run)}
    assert modules == {f"streamhouse.format.{name}" for name in ("_decode", "_encode", "_scan")}
