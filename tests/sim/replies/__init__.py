"""Connections to the cluster of `sim.cluster`: requests and replies as bytes, through the real sessions."""
