-- owner_agent_id: the agent that was chosen to lead the partition, former_owner_id: the one that was chosen before. Each
-- is '' if there is none.
ALTER TABLE partitions ADD COLUMN owner_agent_id TEXT NOT NULL DEFAULT '';
ALTER TABLE partitions ADD COLUMN former_owner_id TEXT NOT NULL DEFAULT '';

-- The agents among whom owners were last chosen, and how often that was done.
CREATE TABLE owner_decisions (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    version BIGINT NOT NULL,
    agents TEXT NOT NULL
);

INSERT INTO owner_decisions (singleton, version, agents) VALUES (1, 0, '[]');

CREATE TRIGGER report_owner_decisions AFTER UPDATE ON owner_decisions
FOR EACH ROW EXECUTE FUNCTION report_change('leases');
