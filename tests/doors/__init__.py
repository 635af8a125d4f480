"""Every way in and out of a node, behind one pair of calls."""
