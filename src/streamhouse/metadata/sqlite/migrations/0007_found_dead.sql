-- Agents that let a lease run out which another took over, and the heartbeat that was the last of each by then: it
-- counts as dead until there is another one.
CREATE TABLE found_dead (
    agent_id TEXT NOT NULL PRIMARY KEY REFERENCES agents (agent_id) ON DELETE CASCADE,
    last_heartbeat INTEGER NOT NULL
);

-- Who asks whoever holds a shard for it, and until when that counts.
ALTER TABLE coordinator_leases ADD COLUMN claimed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE coordinator_leases ADD COLUMN claim_expires_at INTEGER NOT NULL DEFAULT 0;
