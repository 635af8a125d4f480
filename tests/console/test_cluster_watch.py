"""What the cluster's page tells of two looks at it: the module that compares them, in the browser that runs it."""

from __future__ import annotations

from typing import Any

from console_parts.viewer import Viewer

_COMPARE = """async (looks) => {
    const { ClusterWatch } = await import('/console/static/views/cluster/watch.js');
    const watch = new ClusterWatch();
    const moved = looks.map((look) => watch.look(look));
    return { moved, events: watch.events.map(({ kind, text }) => [kind, text]) };
}"""


def agent(name: str, state: str = "live", started_at_ms: int = 1) -> dict[str, Any]:
    return {"agent_id": name, "state": state, "started_at_ms": started_at_ms}


def led(**leaders: str | None) -> list[dict[str, Any]]:
    """p0="a1": partition 0 of orders is led by a1."""
    return [{"topic": "orders", "partition": int(name[1:]), "leader": leader} for name, leader in leaders.items()]


def look(
    agents: list[dict[str, Any]] | None = None,
    partitions: list[dict[str, Any]] | None = None,
    transfers: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    return {"agents": agents or [], "partitions": partitions or [], "transfers": transfers or [], "nowMs": 1}


def compared(viewer: Viewer, *looks: dict[str, Any]) -> Any:
    viewer.go("")
    return viewer.page.evaluate(_COMPARE, list(looks))


def test_the_first_look_tells_nothing(viewer: Viewer) -> None:
    assert compared(viewer, look([agent("a1")], led(p0="a1", p1=None))) == {"moved": [[]], "events": []}


def test_a_fail_over_is_one_line_for_each_pair_of_agents(viewer: Viewer) -> None:
    before = look([agent("a1"), agent("a2")], led(p0="a2", p1="a2", p2="a2", p3="a2", p4="a1"))
    after = look([agent("a1"), agent("a2", "silent")], led(p0="a1", p1="a1", p2="a1", p3="a1", p4="a1"))
    told = compared(viewer, before, after)
    assert told["moved"] == [[], ["orders/0", "orders/1", "orders/2", "orders/3"]]
    assert told["events"] == [
        ["bad", "agent a2: live → silent"],
        ["warn", "orders/0, orders/1, orders/2 and 1 more partition: a2 → a1"],
    ]


def test_who_led_a_partition_before_is_known_when_somebody_takes_it_over(viewer: Viewer) -> None:
    told = compared(
        viewer,
        look(partitions=led(p0="a2", p1="a2")),
        look(partitions=led(p0=None, p1=None)),
        look(partitions=led(p0="a1", p1="a2")),
    )
    assert told["events"] == [
        ["good", "orders/1: led by a2 again"],
        ["warn", "orders/0: a2 → a1"],
        ["bad", "orders/0, orders/1 without a leader: the lease of a2 ended"],
    ]


def test_agents_that_come_go_and_start_again_are_told_of(viewer: Viewer) -> None:
    told = compared(viewer, look([agent("a1"), agent("a2")]), look([agent("a2", started_at_ms=2), agent("a3")]))
    assert told["events"] == [
        ["warn", "agent a1 left"],
        ["good", "agent a3 joined"],
        ["warn", "agent a2 was started again"],
    ]


def test_only_hand_overs_that_went_wrong_are_told_of_and_once(viewer: Viewer) -> None:
    def transfer(number: int, state: str) -> dict[str, Any]:
        return {
            "transfer_id": str(number),
            "topic": "orders",
            "partition": number,
            "to_agent_id": "a2",
            "state": state,
            "reason": "it took too long" if state == "failed" else "",
        }

    over = look(transfers=[transfer(0, "failed"), transfer(1, "completed"), transfer(2, "failed")])
    told = compared(viewer, look(transfers=[transfer(0, "pending"), transfer(1, "pending")]), over, over)
    assert told["events"] == [["bad", "hand-over of orders/0, orders/2 to a2 failed: it took too long"]]
