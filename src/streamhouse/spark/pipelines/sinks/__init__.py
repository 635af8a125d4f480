"""Where a pipeline's rows go, a file for each kind of sink."""
