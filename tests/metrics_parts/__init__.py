"""What is exported, and what asks for it."""
