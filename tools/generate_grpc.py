"""Generates the message modules of `streamhouse.wire.grpc` from its .proto files.

The compiler is the one in grpcio-tools, a development dependency. Run without arguments to write the modules, with
`--check` to fail if what is committed is not what would be written. Only messages are generated: services are
registered by hand, typed, in `server/grpc` and `client`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

_SOURCE = Path(__file__).parent.parent / "src"
_WIRE = _SOURCE / "streamhouse" / "wire" / "grpc"
# What the compiler writes is neither formatted nor checked, and its stubs have generic types without parameters.
_UNCHECKED = "# fmt: off\n# ruff: noqa\n"
_HEADERS = {".py": _UNCHECKED, ".pyi": f'{_UNCHECKED}# mypy: disable-error-code="type-arg"\n'}


def _modules() -> dict[Path, str]:
    """Each module and its stub, under the path where it belongs."""
    protos = sorted(_WIRE.glob("*.proto"))
    with tempfile.TemporaryDirectory() as directory:
        outputs = [f"--python_out={directory}", f"--pyi_out={directory}"]
        if protoc.main(["protoc", f"-I{_SOURCE}", *outputs, *map(str, protos)]) != 0:
            raise SystemExit("protoc refused the definitions")
        written = Path(directory)
        return {
            _SOURCE / path.relative_to(written): _HEADERS[path.suffix] + path.read_text("utf-8")
            for path in sorted(written.rglob("*_pb2.py*"))
        }


def _committed() -> set[Path]:
    return set(_WIRE.glob("*_pb2.py*"))


def _differences(modules: dict[Path, str]) -> list[str]:
    wrong = [path.name for path, text in modules.items() if not path.exists() or path.read_text("utf-8") != text]
    return sorted(wrong + [path.name for path in _committed() - set(modules)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the committed modules differ")
    check_only = parser.parse_args().check
    modules = _modules()
    if check_only:
        differences = _differences(modules)
        for name in differences:
            print(f"{name} is not what tools/generate_grpc.py would write: run it", file=sys.stderr)
        return 1 if differences else 0
    for stale in _committed() - set(modules):
        stale.unlink()
    for path, text in modules.items():
        path.write_text(text, encoding="utf-8")
    print(f"{len(modules)} files")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
