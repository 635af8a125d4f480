"""A seeded simulation of the cluster: the real log and cluster code of three agents, in a world that is a model."""
