"""Real servers for tests and benches: started on free loopback ports, stopped with their owner."""
