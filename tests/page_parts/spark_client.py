"""`streamhouse pipeline …` and `maintain …` of a page, and programs on Spark: handed to the process that has it."""

from __future__ import annotations

import json
import os
import socket
import sys


def main(arguments: list[str]) -> int:
    if arguments[1:2] == ["--program"]:
        return _ask({"program": arguments[2], "page": arguments[3], "goes_on": "--goes-on" in arguments[4:]})
    return _ask({"arguments": arguments})


def _ask(what: dict[str, object]) -> int:
    request = json.dumps({**what, "directory": os.getcwd(), "environment": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ["PAGES_SPARK"])
        socket.send_fds(connection, [request], [1, 2])
        return int(connection.makefile().readline())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
