"""`python -m services.storage FILE`: an empty PostgreSQL database and an empty S3 bucket until SIGTERM, for scripts.

FILE gets the settings that lead a node to them, a line `export STREAMHOUSE_…=…` for each, when both are ready."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

from services.postgres import postgres_server
from services.seaweed import seaweed_server


def main(file: Path) -> None:
    ending = (signal.SIGTERM, signal.SIGINT)
    # Blocked, not handled: the servers start threads and processes, and all must end in order.
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    with postgres_server() as database, seaweed_server() as store:
        bucket = store.create_bucket()
        settings = {
            "METADATA": database.create_database(),
            "OBJECTS": f"{bucket.url}/log",
            "S3_ENDPOINT": bucket.endpoint,
            "S3_REGION": bucket.region,
            "S3_ACCESS_KEY_ID": bucket.access_key_id,
            "S3_SECRET_ACCESS_KEY": bucket.secret_access_key,
        }
        lines = [f"export STREAMHOUSE_{name}={shlex.quote(value)}\n" for name, value in settings.items()]
        unready = file.with_suffix(".unready")
        unready.write_text("".join(lines))
        os.replace(unready, file)
        signal.sigwait(ending)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
