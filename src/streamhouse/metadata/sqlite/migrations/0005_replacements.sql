-- Replacements of segments that were done, by which a repeated one is recognised.
CREATE TABLE segment_replacements (
    commit_id TEXT NOT NULL PRIMARY KEY,
    topic_id TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE INDEX segment_replacements_by_partition ON segment_replacements (topic_id, partition_id, replaced_at);

-- Until when a reader keeps retention from what it has yet to read, and from which offsets on.
CREATE TABLE pins (
    pin_id TEXT NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE pinned_offsets (
    pin_id TEXT NOT NULL REFERENCES pins (pin_id) ON DELETE CASCADE,
    topic_id TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    pinned_offset INTEGER NOT NULL,
    PRIMARY KEY (pin_id, topic_id, partition_id),
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE INDEX pinned_offsets_by_partition ON pinned_offsets (topic_id, partition_id);
