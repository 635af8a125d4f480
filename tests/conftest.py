"""What every test may ask for, an event loop for `async def` tests and real servers; and which tests run, and when."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Iterator

import hypothesis
import pytest
import uvloop

from services.postgres import OwnPostgresServer, PostgresServer, own_postgres_server
from services.postgres import postgres_server as start_postgres
from services.seaweed import S3Bucket, SeaweedServer, seaweed_server
from workers import Shares, longest_first

# A busy machine is not a failure.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Shares:
    return Shares(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`@pytest.mark.long_form("wal")` leaves the variant of a test with that parameter to `make test-long`, and without
    a parameter the whole test."""
    longest_first(items)
    if "SWEEP" not in os.environ:
        left_out = [item for item in items if _is_long_form(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_long_form(item: pytest.Item) -> bool:
    parameters = item.callspec.id.split("-") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else []
    marks = list(item.iter_markers("long_form"))
    return any(not mark.args or any(word in parameters for word in mark.args) for mark in marks)


@pytest.fixture(autouse=True)
def event_loop_runner() -> Iterator[asyncio.Runner]:
    """The loop that an `async def` test and its fixtures share. It is made when it is first used."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield runner


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    pyfuncitem.funcargs["event_loop_runner"].run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Shared by all tests of this process: make databases on it, but do not stop it."""
    with start_postgres() as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """A database of this test's own."""
    dsn = postgres_server.create_database()
    yield dsn
    postgres_server.drop_database(dsn)


@pytest.fixture(scope="module")
def stoppable_postgres() -> Iterator[OwnPostgresServer]:
    """For tests that stop, crash or pause it; each must leave it running."""
    with own_postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[SeaweedServer]:
    """Shared by all tests of this process: make buckets on it, but do not stop it."""
    with seaweed_server() as server:
        yield server


@pytest.fixture
def s3_bucket(s3_server: SeaweedServer) -> Iterator[S3Bucket]:
    """A bucket of this test's own."""
    bucket = s3_server.create_bucket()
    yield bucket
    s3_server.delete_bucket(bucket)


@pytest.fixture(scope="module")
def stoppable_s3() -> Iterator[SeaweedServer]:
    """For tests that stop or pause it; each must leave it running."""
    with seaweed_server() as server:
        yield server
