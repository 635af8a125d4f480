"""Broker addresses as people write them."""

from __future__ import annotations

import pytest

from streamhouse.client.address import Address, parse_advertised, parse_bootstrap
from streamhouse.model.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("127.0.0.1:9092", [Address("127.0.0.1", 9092)]),
        ("broker.example.com", [Address("broker.example.com", 9092)]),
        ("a:1, b:2", [Address("a", 1), Address("b", 2)]),
        ("[::1]:9093", [Address("::1", 9093)]),
        ("[::1]", [Address("::1", 9092)]),
    ],
)
def test_addresses_are_read_in_order(text: str, addresses: list[Address]) -> None:
    assert list(parse_bootstrap(text)) == addresses


@pytest.mark.parametrize(
    "text", ["", "a:", ":9092", "a:0", "a:65536", "a:b", "::1:9092", "http://a:9092", "a b:1", "a:1,"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="HOST:PORT"):
        parse_bootstrap(text)


@pytest.mark.parametrize("text", ["127.0.0.1:9092", "[::1]:9092"])
def test_an_address_is_shown_as_it_was_written(text: str) -> None:
    assert str(parse_bootstrap(text)[0]) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [("a", Address("a", 8080)), ("a:1", Address("a", 1)), ("[::1]:2", Address("::1", 2))],
)
def test_an_address_to_advertise_may_leave_its_port_to_the_listener(text: str, told: Address) -> None:
    assert parse_advertised(text, 8080) == told


@pytest.mark.parametrize("text", ["bad host", "one:two", "one,two"])
def test_only_one_address_is_advertised(text: str) -> None:
    with pytest.raises(InvalidInput, match="write HOST or HOST:PORT"):
        parse_advertised(text)
