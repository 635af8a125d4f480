"""Coordinators of groups, members that talk to them, and a store between them that can be held up."""
