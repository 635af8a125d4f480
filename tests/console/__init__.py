"""The console in a real browser, over a live node."""
