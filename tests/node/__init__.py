"""The node as its users have it: a process, reached only over its sockets, its signals and its files."""
