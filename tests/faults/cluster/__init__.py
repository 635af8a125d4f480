"""What must hold when many agents share one log, and any of them is killed, paused, cut off or moved at any moment."""
