"""`python -m page_parts.services DIRECTORY`: PostgreSQL and S3 where the pages have them, until it is killed.

The server of the database is at its usual port and believes whoever comes; the bucket is where DIRECTORY/environment
leads every tool for S3."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from pathlib import Path

import asyncpg
import boto3  # type: ignore[import-untyped]

from services.postgres import OwnPostgresServer
from services.seaweed import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, seaweed_server

POSTGRES_PORT = 5432
OWNERS = {"db": "user", "lost": "user", "restored": "user", "streamhouse": "streamhouse"}
"""Of each database the user that pages name with it."""
BUCKETS = ("bucket", "my-bucket", "lake")
ENVIRONMENT = "environment"


def main(directory: Path) -> None:
    home = directory / "postgres"
    home.mkdir(mode=0o755)
    server = OwnPostgresServer(home, port=POSTGRES_PORT)
    server.initialise()
    (home / "data" / "pg_hba.conf").write_text("host all all 127.0.0.1/32 trust\n")
    server.start()
    asyncio.run(_make_databases(server.dsn("postgres")))
    with seaweed_server() as store:
        settings = {
            "AWS_ENDPOINT_URL": store.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
        }
        client = boto3.client("s3", endpoint_url=store.endpoint, **_credentials())
        for bucket in BUCKETS:
            client.create_bucket(Bucket=bucket)
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in settings.items()]
        unready = directory / f"{ENVIRONMENT}.unready"
        unready.write_text("".join(lines))
        os.replace(unready, directory / ENVIRONMENT)
        signal.pause()


def _credentials() -> dict[str, str]:
    return {
        "region_name": REGION,
        "aws_access_key_id": ACCESS_KEY_ID,
        "aws_secret_access_key": SECRET_ACCESS_KEY,
    }


async def _make_databases(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for database, owner in OWNERS.items():
            if not await connection.fetchval("SELECT count(*) FROM pg_roles WHERE rolname = $1", owner):
                await connection.execute(f'CREATE ROLE "{owner}" LOGIN')
            await connection.execute(f'CREATE DATABASE "{database}" OWNER "{owner}"')
    finally:
        await connection.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
