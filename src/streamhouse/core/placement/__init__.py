"""Who leads what: leases, the ring, and the way from one leader to the next."""
