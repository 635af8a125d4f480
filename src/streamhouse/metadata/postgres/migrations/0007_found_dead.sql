-- Agents that let a lease run out which another took over, and the heartbeat that was the last of each by then: it
-- counts as dead until there is another one.
CREATE TABLE found_dead (
    agent_id TEXT PRIMARY KEY REFERENCES agents (agent_id) ON DELETE CASCADE,
    last_heartbeat BIGINT NOT NULL
);

-- Who asks whoever holds a shard for it, and until when that counts.
ALTER TABLE coordinator_leases
    ADD COLUMN claimed_by TEXT NOT NULL DEFAULT '',
    ADD COLUMN claim_expires_at BIGINT NOT NULL DEFAULT 0;

CREATE TRIGGER report_deaths AFTER INSERT OR UPDATE OR DELETE ON found_dead
FOR EACH ROW EXECUTE FUNCTION report_change('agents');

CREATE TRIGGER report_claims AFTER UPDATE OF claimed_by, claim_expires_at ON coordinator_leases FOR EACH ROW
WHEN ((OLD.claimed_by, OLD.claim_expires_at) IS DISTINCT FROM (NEW.claimed_by, NEW.claim_expires_at))
EXECUTE FUNCTION report_change('leases');
