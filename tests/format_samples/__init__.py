"""Batches, records and kernels that the tests of the format layer share."""
