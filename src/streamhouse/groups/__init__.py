"""Consumer groups: one task per group decides, stores, replies."""
