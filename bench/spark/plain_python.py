"""The limit of the jobs: the same Arrow data read and written in one plain Python process, without Spark or a node.

`python -m bench.spark.plain_python FORMAT FROM TO` prints how many rows there were and what they cost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.servers import ServerFailed
from bench.spark.memory_source import SUFFIX
from bench.spark.processor import Cost

PARQUET = "parquet"
ARROW = "arrow"
"""Compressed with LZ4, as segments are."""
REPOSITORY = Path(__file__).parents[2]
HUNG_SECONDS = 300


def measure(form: str, source: Path, target: Path) -> Cost:
    command = [sys.executable, "-m", "bench.spark.plain_python", form, str(source), str(target)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=HUNG_SECONDS)
    if done.returncode:
        raise ServerFailed(f"plain Python ended with {done.returncode}: {done.stderr[-500:]}")
    return Cost(**json.loads(done.stdout))


def main(form: str, source: str, target: str) -> None:
    files = sorted(Path(source).glob(f"*{SUFFIX}"))
    Path(target).mkdir(parents=True)
    began, cpu_began = time.perf_counter(), time.process_time()
    records = sum(_copy(form, file, Path(target) / file.name) for file in files)
    cost = {
        "records": records,
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu_began,
    }
    print(json.dumps(cost))


def _copy(form: str, source: Path, target: Path) -> int:
    reader = pa.ipc.open_file(pa.OSFile(str(source)))
    batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
    records = 0
    if form == PARQUET:
        # As `maintain export` writes it.
        few = ["topic", "partition", "timestampType"]
        writer = pq.ParquetWriter(str(target), reader.schema, compression="zstd", use_dictionary=few)
    else:
        writer = pa.ipc.new_file(str(target), reader.schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))
    with writer:
        for batch in batches:
            writer.write_batch(batch)
            records += batch.num_rows
    return records


if __name__ == "__main__":
    main(*sys.argv[1:])
