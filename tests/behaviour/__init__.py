"""One suite per protocol, which every implementation passes."""
