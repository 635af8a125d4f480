-- The newest plan to replace segments of a partition; what an older one made can no longer be registered.
ALTER TABLE partitions ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
