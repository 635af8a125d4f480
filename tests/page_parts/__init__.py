"""The commands and programs of README and docs: found, run in their order, and held against what is shown."""
