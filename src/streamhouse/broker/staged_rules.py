"""What topics ask of records, asked of what a sink has staged for them before its batch is begun: later it is too late,
since what was begun must be possible to finish. Only topics that ask something have their batches read twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from streamhouse.broker.staged_batches import StagedBatches
from streamhouse.core.record_rules import RecordRules
from streamhouse.format.staging import StagedObject
from streamhouse.objects.store import ObjectStore


async def check_staged_records(
    objects: ObjectStore, staged: Sequence[StagedObject], rules: Mapping[str, RecordRules], now_ms: int
) -> None:
    """`rules` by topic. Raises what is wrong with the first batch that is not allowed."""
    batches = StagedBatches(objects, staged)
    for item in staged:
        for run in item.runs:
            its_rules = rules[run.topic]
            if its_rules.are_none:
                continue
            async for batch in batches.read(item.key, run):
                await asyncio.to_thread(its_rules.admit, batch, now_ms)
