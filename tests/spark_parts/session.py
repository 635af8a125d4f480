"""The Spark session that all tests of a worker share: starting one takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from services.seaweed import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTS = Path(__file__).parents[1]

MASTER = "local[2,4]"
HEAP = "1g"
# The compiler that is quick to start, and the collector that needs no threads: tests are over before more pays off.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

S3_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
    "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
    "AWS_REGION": REGION,
}
"""The executors' own credentials, for every bucket of the tests' S3 server."""


def session_conf(warehouse: str) -> dict[str, str]:
    return {
        "spark.driver.memory": HEAP,
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.sql.warehouse.dir": warehouse,
        # Workers import the functions of a test from its module, and that what it needs.
        "spark.executorEnv.PYTHONPATH": str(TESTS),
        **{f"spark.executorEnv.{name}": value for name, value in S3_ENVIRONMENT.items()},
    }


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores, retried tasks, credentials for the tests' buckets. Leave its settings as they were."""
    from streamhouse.spark.session import open_session

    warehouse = tmp_path_factory.mktemp("warehouse")
    session = open_session("tests", master=MASTER, conf=session_conf(str(warehouse)))
    yield session
    session.stop()
