"""Which records somebody looks for: a small language of conditions, and the fields of records that it names."""
