"""The composition root: nodes, and processes that run one."""
