"""Who leads what: leases now, the ring with the cluster."""
