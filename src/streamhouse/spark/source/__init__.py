"""Reading topics: the driver plans by bytes, executors read blocks from the object store and the tail from a node."""
