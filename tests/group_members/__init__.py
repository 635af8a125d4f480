"""Members of consumer groups as real processes, which can leave, crash and pause like those of users."""
