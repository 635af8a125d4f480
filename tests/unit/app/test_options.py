"""What the parts of a node are told, and what is warned of."""

from __future__ import annotations

import pytest

from streamhouse.app.options import is_sent_in_the_clear
from streamhouse.model.settings import Settings


@pytest.mark.parametrize(
    ("objects", "endpoint", "is_open"),
    [
        ("s3://bucket", "http://s3.example.com:9000", True),
        ("s3://bucket", "https://s3.example.com", False),
        ("s3://bucket", "http://127.0.0.1:9000", False),
        ("s3://bucket", "http://localhost:9000", False),
        ("s3://bucket", "", False),
        ("file:///x", "http://s3.example.com:9000", False),
    ],
)
def test_an_object_store_that_is_reached_in_the_clear_is_known(objects: str, endpoint: str, is_open: bool) -> None:
    assert is_sent_in_the_clear(Settings(objects=objects, s3_endpoint=endpoint)) is is_open
