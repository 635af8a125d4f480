"""The metadata store behind small protocols."""
