"""What must hold when things break: kill, pause, corrupt, refuse, and a checker that judges what clients saw."""
