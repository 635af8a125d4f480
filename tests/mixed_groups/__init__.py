"""Groups with members of both protocols: clients, a store and a network, all on virtual time."""
