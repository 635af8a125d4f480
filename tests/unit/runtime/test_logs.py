"""The log: a line for each event, whatever is in it, and nothing that should stay secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from streamhouse.model.settings import Settings
from streamhouse.runtime.logs import MASK, JsonLines, SecretHider, TextLines, configure_logs, secrets_of

SECRET = "pa55/w0rd+x"
SETTINGS = {
    "s3_secret_access_key": "AKIASECRETKEY",
    "s3_session_token": "token-of-the-session",
    "metadata": f"postgresql://me:{SECRET}@db.example.com/streams?sslpassword=qwertyuiop",
}


@pytest.fixture
def root_as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(params=["text", "json"])
def log(request: pytest.FixtureRequest, root_as_before: None) -> io.StringIO:
    stream = io.StringIO()
    configure_logs(Settings(**SETTINGS, log_format=request.param), stream)
    return stream


def fail_with(text: str) -> None:
    try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger("streamhouse.test").exception("it failed")


def test_every_event_is_one_line(log: io.StringIO) -> None:
    logger = logging.getLogger("streamhouse.test")
    logger.warning("two\nlines, a return\r, a bell \a and U+2028 \u2028 of %s", "umlaute äöü")
    fail_with("also\nof two lines")
    logger.info("plain")
    logger.debug("below the level")
    assert len(log.getvalue().split("\n")) == len(log.getvalue().splitlines()) + 1 == 4


@pytest.mark.parametrize(
    "secret", ["AKIASECRETKEY", "token-of-the-session", SECRET, "qwertyuiop"], ids=["key", "token", "password", "query"]
)
def test_no_secret_of_the_settings_is_in_a_message_an_argument_or_a_traceback(log: io.StringIO, secret: str) -> None:
    logger = logging.getLogger("streamhouse.test")
    logger.info(f"said {secret}")
    logger.info("said %s", {"nested": [secret]})
    fail_with(f"cannot connect with {secret}")
    assert secret not in log.getvalue()
    assert log.getvalue().count(MASK) >= 3


def test_a_password_in_a_url_is_masked_though_nobody_knows_it(log: io.StringIO) -> None:
    logging.getLogger("asyncpg").warning("connecting to postgresql://you:hunter2@other/db as told")
    assert "hunter2" not in log.getvalue()
    assert f"postgresql://you:{MASK}@other/db as told" in log.getvalue()


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_secret_that_is_a_name_as_well_is_masked_as_a_value_and_read_as_a_name(
    root_as_before: None, log_format: str
) -> None:
    stream = io.StringIO()
    metadata = "postgresql://app-user:app-user@db.example.com/streamhouse?sslpassword=streamhouse"
    configure_logs(Settings(metadata=metadata, s3_secret_access_key="streamhouse", log_format=log_format), stream)
    logger = logging.getLogger("streamhouse.log.engine")
    logger.info("look at it with `streamhouse wal show`; connected to %s", metadata)
    logger.info("settings: %s, s3_secret_access_key=streamhouse password: app-user", {"s3_secret_key": "streamhouse"})
    named, values = stream.getvalue().splitlines()
    assert "streamhouse.log.engine" in named
    assert "`streamhouse wal show`" in named
    assert f"postgresql://app-user:{MASK}@db.example.com/streamhouse?sslpassword={MASK}" in named
    assert values.count(MASK) == 3
    assert "app-user" not in values
    assert "streamhouse" not in values.replace("streamhouse.log.engine", "")


def test_short_and_missing_secrets_mask_nothing(root_as_before: None) -> None:
    stream = io.StringIO()
    configure_logs(Settings(s3_secret_access_key="e"), stream)
    logging.getLogger("streamhouse.test").info("everything is readable")
    assert "everything is readable" in stream.getvalue()


def test_lines_for_machines_are_objects_with_time_level_logger_and_message(root_as_before: None) -> None:
    stream = io.StringIO()
    configure_logs(Settings(log_format="json"), stream)
    logging.getLogger("streamhouse.test").warning("cannot upload %s", "x")
    fail_with("of this")
    plain, failed = map(json.loads, stream.getvalue().splitlines())
    assert (plain["level"], plain["logger"], plain["message"]) == ("warning", "streamhouse.test", "cannot upload x")
    assert plain["time"].endswith("Z")
    assert set(plain) == {"time", "level", "logger", "message"}
    assert failed["error"] == "ValueError: of this"
    assert "fail_with" in failed["traceback"]


@pytest.mark.parametrize("lines", [TextLines, JsonLines])
def test_a_message_that_cannot_be_put_together_is_logged_all_the_same(lines: type[TextLines] | type[JsonLines]) -> None:
    broken = logging.LogRecord("streamhouse.test", logging.INFO, "file.py", 1, "%d records", ("many",), None)
    assert "many" in lines(SecretHider([])).format(broken)


def test_a_password_with_escapes_is_known_in_both_spellings() -> None:
    secrets = secrets_of(Settings(metadata="postgresql://me:a%40b%2Fc@db/x"))
    assert {"a%40b%2Fc", "a@b/c"} <= set(secrets)
