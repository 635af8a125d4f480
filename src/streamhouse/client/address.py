"""Where brokers are: `HOST:PORT`, several separated by commas, IPv6 hosts in brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamhouse.model.errors import InvalidConfig, InvalidInput

DEFAULT_PORT = 9092

_ADDRESS = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.%a-z]+)\]|(?P<plain>[^\s:\[\],/@]+))(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True, order=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(text: str, default_port: int = DEFAULT_PORT) -> tuple[Address, ...]:
    """The brokers to ask first, in the order given."""
    return tuple(_parse_address(part.strip(), default_port) for part in text.split(","))


def parse_advertised(text: str, default_port: int = DEFAULT_PORT) -> Address:
    """The one address that others are told."""
    try:
        (told,) = parse_bootstrap(text, default_port)
    except (InvalidInput, ValueError):
        raise InvalidConfig(f"{text!r} is not an address to advertise", hint="write HOST or HOST:PORT") from None
    return told


def _parse_address(text: str, default_port: int) -> Address:
    match = _ADDRESS.fullmatch(text)
    port = int(match["port"] or default_port) if match else 0
    if match is None or not 0 < port < 65536:
        raise InvalidInput(
            f"{text!r} is not a broker address", hint="write HOST:PORT, such as 127.0.0.1:9092 or [::1]:9092"
        )
    return Address(host=match["bracketed"] or match["plain"], port=port)
