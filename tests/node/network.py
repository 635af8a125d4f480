"""A real network for agents: a namespace for each, with a link to clients and other agents, one to the database, one
to the object store; a link that is down loses packets and tells nobody."""

from __future__ import annotations

import random
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum

from services.addresses import addresses_change


class Way(Enum):
    """What an agent can be cut from."""

    PEERS = "clients and other agents"
    DATABASE = "the database"
    STORE = "the object store"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an agent runs. `hosts`: the addresses at which it reaches what is outside, on the link of each way."""

    host: str
    hosts: dict[Way, str]
    links: dict[Way, str]
    wrapper: tuple[str, ...]

    def cut(self, way: Way) -> None:
        _ip("link", "set", self.links[way], "down")

    def mend(self) -> None:
        for link in self.links.values():
            _ip("link", "set", link, "up")


LOOPBACK = Place(host="127.0.0.1", hosts=dict.fromkeys(Way, "127.0.0.1"), links={}, wrapper=())
"""For agents that share the network of the test."""


_PROBE_PORT = 9  # nobody listens there, so whoever is reached refuses
_PROBE_SECONDS = 10.0
_TRIES = 3


class Unreachable(AssertionError):
    """A namespace that packets do not get to: of no use to a test."""


class Network:
    """Interfaces have names of 15 characters at most, so all of one network's begin with the same few letters."""

    def __init__(self) -> None:
        self._ending = ExitStack()
        source = random.SystemRandom()
        self._name = f"sh{source.randrange(16**4):04x}"
        self._prefix = f"10.{source.randrange(100, 200)}.{4 * source.randrange(64)}"
        self._places = 0
        self._bridge = f"{self._name}br"
        _ip("link", "add", self._bridge, "type", "bridge")
        self._ending.callback(_ip, "link", "del", self._bridge)
        _ip("addr", "add", f"{self._prefix}.1/24", "dev", self._bridge)
        _bring_up(self._bridge)

    def place(self) -> Place:
        """A new namespace on it."""
        with addresses_change():
            return self.add_place()

    def add_place(self) -> Place:
        """For who has seen to it that addresses may change."""
        self._places += 1
        number = self._places
        namespace = f"{self._name}n{number}"
        _ip("netns", "add", namespace)
        self._ending.callback(_ip, "netns", "del", namespace)
        _ip("-n", namespace, "link", "set", "lo", "up")
        host = f"{self._prefix}.{10 + number}"
        links = {way: f"{self._name}{way.name[0].lower()}{number}" for way in Way}
        hosts = {Way.PEERS: f"{self._prefix}.1"}
        self._connect(namespace, links[Way.PEERS], f"{host}/24")
        _ip("link", "set", links[Way.PEERS], "master", self._bridge)
        block, _, last = self._prefix.rpartition(".")
        for subnet, way in enumerate((Way.DATABASE, Way.STORE), start=1):
            network = f"{block}.{int(last) + subnet}"
            hosts[way] = f"{network}.{4 * number + 1}"
            self._connect(namespace, links[way], f"{network}.{4 * number + 2}/30")
            _ip("addr", "add", f"{hosts[way]}/30", "dev", links[way])
        _probe(host)
        return Place(host=host, hosts=hosts, links=links, wrapper=("ip", "netns", "exec", namespace))

    def close(self) -> None:
        self._ending.close()

    def _connect(self, namespace: str, link: str, address: str) -> None:
        inside = f"{link}i"
        _ip("link", "add", link, "type", "veth", "peer", "name", inside, "netns", namespace)
        self._ending.callback(_ip, "link", "del", link)  # now, and not some time after its namespace
        _ip("-n", namespace, "addr", "add", address, "dev", inside)
        _ip("-n", namespace, "link", "set", inside, "up")
        _bring_up(link)


@contextmanager
def network() -> Iterator[Network]:
    """Gone at the end, with everything in it."""
    with addresses_change():
        made = _reachable()
    try:
        yield made
    finally:
        with addresses_change():
            made.close()


def _reachable() -> Network:
    """Addresses are taken by chance, and the machine may have a use for some: then others are tried."""
    for _ in range(_TRIES - 1):
        found = Network()
        try:
            found.add_place()
        except Unreachable:
            found.close()
        else:
            return found
    return Network()


def _probe(host: str) -> None:
    try:
        with socket.create_connection((host, _PROBE_PORT), timeout=_PROBE_SECONDS):
            pass
    except ConnectionRefusedError:
        return
    except OSError as problem:
        seen = "".join(_ip(*what) for what in (("addr",), ("route",), ("neigh",)))
        raise Unreachable(f"packets do not get to {host}: {problem}\n{seen}") from None


def _bring_up(link: str) -> None:
    """Without an address of the sixth version, which would come and go whenever the link is cut and mended."""
    _ip("link", "set", link, "addrgenmode", "none")
    _ip("link", "set", link, "up")


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"
    return done.stdout
