"""Consumer groups as pure state machines, and the assignors that divide partitions among their members."""
