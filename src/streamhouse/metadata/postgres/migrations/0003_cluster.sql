-- wal_end: where the partition's WAL objects end. wal_agent_id: whose own disk may hold acknowledged records that no
-- segment has yet. pinned_to: where an operator moved it. Each is '' if there is no such agent.
ALTER TABLE partitions
    ADD COLUMN wal_end BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN wal_agent_id TEXT NOT NULL DEFAULT '',
    ADD COLUMN pinned_to TEXT NOT NULL DEFAULT '';

-- Until now every leader had its own WAL, which may still hold what it acknowledged.
UPDATE partitions p SET wal_agent_id = l.leader_agent_id
FROM partition_leases l WHERE l.topic = p.topic AND l.partition_id = p.partition_id;

-- An agent's Kafka node id is its own forever, also when it is not registered.
CREATE TABLE agent_nodes (
    agent_id TEXT PRIMARY KEY,
    node_id INTEGER NOT NULL UNIQUE
);

-- Above every id that any agent ever had.
CREATE TABLE node_ids (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    next_node_id BIGINT NOT NULL
);

INSERT INTO node_ids (singleton, next_node_id) VALUES (1, 1);

CREATE TABLE partition_transfers (
    transfer_id UUID PRIMARY KEY,
    topic_id UUID NOT NULL,
    partition_id INTEGER NOT NULL,
    from_agent_id TEXT NOT NULL,
    to_agent_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'accepted', 'completed', 'rejected', 'failed')),
    reason TEXT NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX partition_transfers_under_way ON partition_transfers (topic_id, partition_id)
WHERE state IN ('pending', 'accepted');

CREATE INDEX partition_transfers_by_partition ON partition_transfers (topic_id, partition_id);
CREATE INDEX partition_transfers_by_age ON partition_transfers (created_at);

CREATE TABLE wal_objects (
    object_key TEXT PRIMARY KEY,
    commit_id UUID NOT NULL UNIQUE,
    agent_id TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

-- What of a partition an object holds: [base_offset, end_offset), each following the one before.
CREATE TABLE wal_ranges (
    topic_id UUID NOT NULL,
    partition_id INTEGER NOT NULL,
    base_offset BIGINT NOT NULL,
    end_offset BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    position BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    checksum BIGINT NOT NULL,
    object_key TEXT NOT NULL REFERENCES wal_objects (object_key),
    PRIMARY KEY (topic_id, partition_id, base_offset),
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE,
    CHECK (base_offset < end_offset)
);

CREATE INDEX wal_ranges_by_object ON wal_ranges (object_key);

-- Whoever listens is told what kind of thing changed; all that a transaction did of one kind is told once. Heartbeats
-- and renewals are not told.
CREATE FUNCTION report_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('streamhouse_changes', TG_ARGV[0]);
    RETURN NULL;
END
$$;

CREATE TRIGGER report_topics AFTER INSERT OR UPDATE OR DELETE ON topics
FOR EACH ROW EXECUTE FUNCTION report_change('topics');

CREATE TRIGGER report_agents AFTER INSERT OR DELETE ON agents
FOR EACH ROW EXECUTE FUNCTION report_change('agents');

CREATE TRIGGER report_agent_changes AFTER UPDATE ON agents FOR EACH ROW
WHEN (
    (OLD.address, OLD.availability_zone, OLD.agent_group, OLD.started_at, OLD.metadata)
    IS DISTINCT FROM (NEW.address, NEW.availability_zone, NEW.agent_group, NEW.started_at, NEW.metadata)
)
EXECUTE FUNCTION report_change('agents');

CREATE TRIGGER report_leases AFTER INSERT OR DELETE ON partition_leases
FOR EACH ROW EXECUTE FUNCTION report_change('leases');

-- A released lease expires at zero.
CREATE TRIGGER report_lease_changes AFTER UPDATE ON partition_leases FOR EACH ROW
WHEN (
    (OLD.leader_agent_id, OLD.epoch) IS DISTINCT FROM (NEW.leader_agent_id, NEW.epoch)
    OR (NEW.lease_expires_at = 0 AND OLD.lease_expires_at <> 0)
)
EXECUTE FUNCTION report_change('leases');

CREATE TRIGGER report_coordinator_changes AFTER UPDATE ON coordinator_leases FOR EACH ROW
WHEN (
    (OLD.leader_agent_id, OLD.epoch) IS DISTINCT FROM (NEW.leader_agent_id, NEW.epoch)
    OR (NEW.lease_expires_at = 0 AND OLD.lease_expires_at <> 0)
)
EXECUTE FUNCTION report_change('leases');

CREATE TRIGGER report_placement_changes AFTER UPDATE OF wal_agent_id, pinned_to ON partitions FOR EACH ROW
WHEN ((OLD.wal_agent_id, OLD.pinned_to) IS DISTINCT FROM (NEW.wal_agent_id, NEW.pinned_to))
EXECUTE FUNCTION report_change('leases');

CREATE TRIGGER report_transfers AFTER INSERT ON partition_transfers
FOR EACH ROW EXECUTE FUNCTION report_change('transfers');

CREATE TRIGGER report_transfer_changes AFTER UPDATE OF state ON partition_transfers FOR EACH ROW
WHEN (OLD.state IS DISTINCT FROM NEW.state)
EXECUTE FUNCTION report_change('transfers');
