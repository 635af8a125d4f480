"""What every listener calls, in no protocol's terms."""
