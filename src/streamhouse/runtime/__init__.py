"""The only door to time, randomness and tasks."""
