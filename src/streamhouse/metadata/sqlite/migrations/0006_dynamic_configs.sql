-- Configs of a broker (by its node id, or '' for all brokers) and of a group, set while nodes run.
CREATE TABLE dynamic_configs (
    kind TEXT NOT NULL CHECK (kind IN ('broker', 'group')),
    name TEXT NOT NULL,
    config_name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, name, config_name)
) WITHOUT ROWID;
