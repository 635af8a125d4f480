-- How often segments of a partition were replaced: who remembers its segments sees by it that they are others by now.
ALTER TABLE partitions ADD COLUMN replacements BIGINT NOT NULL DEFAULT 0;
