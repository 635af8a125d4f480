"""The assignors by the names that clients and settings use."""

from __future__ import annotations

from collections.abc import Mapping

from streamhouse.core.groups.assignors.assignment import Assignor
from streamhouse.core.groups.assignors.range import assign_range
from streamhouse.core.groups.assignors.round_robin import assign_round_robin
from streamhouse.core.groups.assignors.sticky import assign_sticky

ASSIGNORS: Mapping[str, Assignor] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "uniform": assign_sticky,  # KIP-848's name for even and sticky
}
