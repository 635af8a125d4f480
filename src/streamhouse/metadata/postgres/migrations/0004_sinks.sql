-- Who writes a sink's next batch. forgotten_through: rows of batches up to this one have been removed.
CREATE TABLE sinks (
    sink_id TEXT PRIMARY KEY,
    producer_id BIGINT NOT NULL,
    producer_epoch INTEGER NOT NULL,
    forgotten_through BIGINT NOT NULL DEFAULT -1,
    used_at BIGINT NOT NULL
);

-- A batch is begun when it has a row, and done when that has a time: then its records are in the log.
CREATE TABLE sink_batches (
    sink_id TEXT NOT NULL REFERENCES sinks (sink_id) ON DELETE CASCADE,
    batch_id BIGINT NOT NULL,
    manifest_key TEXT NOT NULL,
    record_count BIGINT NOT NULL,
    producer_id BIGINT NOT NULL,
    producer_epoch INTEGER NOT NULL,
    begun_at BIGINT NOT NULL,
    claimed_at BIGINT NOT NULL,
    done_at BIGINT,
    PRIMARY KEY (sink_id, batch_id)
);

CREATE INDEX sink_batches_under_way ON sink_batches (claimed_at) WHERE done_at IS NULL;
CREATE INDEX sink_batches_by_age ON sink_batches (done_at);

-- Staging objects that no batch may begin with any more.
CREATE TABLE abandoned_objects (
    object_key TEXT PRIMARY KEY,
    abandoned_at BIGINT NOT NULL
);

CREATE INDEX abandoned_objects_by_age ON abandoned_objects (abandoned_at);
