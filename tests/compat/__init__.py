"""Real clients against a real node: what each sends, it and the others read back exactly."""
