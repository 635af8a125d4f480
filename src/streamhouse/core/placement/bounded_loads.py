"""Bounded loads on the ring: who should own each partition from now on, given who did before.

Consistent hashing alone spreads six partitions badly over three agents. So an owner is decided once and stays; the ring
says which of the agents that have equally little gets what is to be given. Decided anew is what has no owner, or one
that is not there any more; taken from its owner is only what a topic's cap forbids, and what an agent that came is to
have.

One decision is a function of what is stored: the owners, and the agents among whom they were chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from math import floor

from streamhouse.core.placement.assignment import Assignment, Candidate, Pool
from streamhouse.core.placement.ring import partition_key

Owners = Mapping[tuple[str, int], str]
"""By topic and number of a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOwners:
    """A topic, which agents may lead it, and the owner of each partition that is free to go to any of them, "" if none
    was decided. Those are not free that an operator pinned, and those that only an absent agent's disk has. `formers`:
    who owned some of them before that."""

    name: str
    agent_group: str
    zone: str
    owners: Mapping[int, str]
    formers: Mapping[int, str] = field(default_factory=dict)


def topic_cap(partitions: int, agents: int) -> int:
    """How many of a topic's partitions one of so many agents may own: the mean, rounded up."""
    return -(-partitions // agents)


def group_cap(partitions: int, agents: int) -> int:
    """How many of all partitions of an agent group one of its agents may own: 1.25 times the mean, rounded up."""
    return -(-5 * partitions // (4 * agents))


def remembered(owner: str, former: str, to: str, agent_ids: Collection[str]) -> str:
    """The former owner of a partition that goes from one to another, decided among these agents: the one that had it,
    which gets it again when it comes back, or when the other goes.

    Nobody, if it goes back to its former owner from one that stays: that one only kept it, and could not tell such from
    its own when it comes back itself one day."""
    return "" if former == to and owner in agent_ids else owner


def is_settled(assignment: Assignment, topics: Iterable[TopicOwners], before: Collection[Candidate]) -> bool:
    """Whether `decide` would change nothing."""
    return set(assignment.candidates) == set(before) and all(_is_settled(assignment, topic) for topic in topics)


def _is_settled(assignment: Assignment, topic: TopicOwners) -> bool:
    pool = assignment.pool(topic.agent_group, topic.zone)
    if pool is None:
        return True
    loads = Counter(topic.owners.values())
    cap = topic_cap(len(topic.owners), len(pool.agent_ids))
    return all(agent_id in pool.members and load <= cap for agent_id, load in loads.items())


def decide(
    assignment: Assignment, topics: Sequence[TopicOwners], before: Collection[Candidate]
) -> dict[tuple[str, int], str]:
    """The partitions that get another owner than they had, and which. `before`: the agents among whom the owners that
    there are were chosen."""
    deciding = _Deciding(assignment, topics)
    deciding.give_back()
    deciding.give_what_is_nobodys()
    deciding.keep_topics_within_their_caps()
    came = sorted(set(assignment.candidates).difference(before), key=_by_id)
    went = set(before).difference(assignment.candidates)
    deciding.give_to_those_who_came(came)
    for group in sorted(deciding.groups):
        joined = sum(1 for candidate in came if candidate.agent_group == group)
        left = sum(1 for candidate in went if candidate.agent_group == group)
        remained = sum(1 for candidate in before if candidate.agent_group == group)
        deciding.keep_a_group_within_its_cap(group, joined=joined, left=left, agents_before=remained)
    return deciding.changes


def _by_id(candidate: Candidate) -> str:
    return candidate.agent_id


class _Topic:
    """The partitions of one topic while they are given out."""

    __slots__ = ("cap", "formers", "group", "loads", "mean", "name", "owners", "pool")

    def __init__(self, topic: TopicOwners, pool: Pool) -> None:
        self.name = topic.name
        self.group = topic.agent_group
        self.pool = pool
        self.cap = topic_cap(len(topic.owners), len(pool.agent_ids))
        self.mean = len(topic.owners) // len(pool.agent_ids)
        self.owners = {number: owner if owner in pool.members else "" for number, owner in topic.owners.items()}
        self.formers = topic.formers
        self.loads = dict.fromkeys(pool.agent_ids, 0)
        for owner in self.owners.values():
            if owner:
                self.loads[owner] += 1

    @property
    def is_even(self) -> bool:
        """Whether what has no owner can still be given out so that no agent has two more of it than another."""
        least, with_one_more = divmod(len(self.owners), len(self.loads))
        most = sum(1 for load in self.loads.values() if load == least + 1)
        return max(self.loads.values()) <= least + 1 and most <= with_one_more

    def first(self, number: int, among: Collection[str]) -> str:
        """Whom of them the ring names for a partition."""
        found = self.pool.ring.first(partition_key(self.name, number), among)
        assert found is not None, "asked among nobody"
        return found

    def claim(self, number: int, agent_id: str) -> int:
        """How much it is one of its agents': 0 if that had it before, 1 if the ring names it, 2 if neither."""
        if self.formers.get(number) == agent_id:
            return 0
        return 1 if self.first(number, self.pool.members) == agent_id else 2


class _Group:
    """The agents of one group, and all that they own."""

    __slots__ = ("agent_ids", "cap", "mean", "partitions")

    def __init__(self, agent_ids: Sequence[str], partitions: int) -> None:
        self.agent_ids = agent_ids
        self.partitions = partitions
        self.mean = partitions // len(agent_ids)
        self.cap = group_cap(partitions, len(agent_ids))


class _Deciding:
    """Loads, and how they change while owners are chosen."""

    def __init__(self, assignment: Assignment, topics: Sequence[TopicOwners]) -> None:
        self._before = {(topic.name, number): owner for topic in topics for number, owner in topic.owners.items()}
        self.changes: dict[tuple[str, int], str] = {}
        self._topics: list[_Topic] = []
        self._loads = {candidate.agent_id: 0 for candidate in sorted(assignment.candidates, key=_by_id)}
        counts: Counter[str] = Counter()
        for topic in topics:
            pool = assignment.pool(topic.agent_group, topic.zone)
            if pool is not None and topic.owners:
                self._topics.append(_Topic(topic, pool))
                counts[topic.agent_group] += len(topic.owners)
        for placed in self._topics:
            for agent_id, load in placed.loads.items():
                self._loads[agent_id] += load
        self.groups: dict[str, _Group] = {}
        for name, count in counts.items():
            pool = assignment.pool(name, "")
            assert pool is not None, "a topic has agents, and so has its group"
            self.groups[name] = _Group(pool.agent_ids, count)
        # Large topics leave less choice, so they come first; what there is of one partition each evens it out.
        self._topics.sort(key=lambda topic: (-len(topic.owners), topic.name))

    # --- steps ---

    def give_back(self) -> None:
        """What one that is gone now had from another, if that is even: who came and goes leaves all as it was."""
        for topic in self._topics:
            back = {
                number: former
                for number, owner in topic.owners.items()
                if not owner and (former := topic.formers.get(number, "")) in topic.pool.members
            }
            for number, former in back.items():
                if self._loads[former] < self.groups[topic.group].cap:
                    self._give(topic, number, former)
            if back and not topic.is_even:
                for number in back:
                    self._take_back(topic, number)

    def give_what_is_nobodys(self) -> None:
        for topic in self._topics:
            for number in sorted(number for number, owner in topic.owners.items() if not owner):
                self._give(topic, number, topic.first(number, self._best_of(topic)))

    def keep_topics_within_their_caps(self) -> None:
        """They are smaller when an agent came, or when more agents may lead the topic."""
        for topic in self._topics:
            while True:
                most = max(topic.pool.agent_ids, key=lambda agent_id: (topic.loads[agent_id], self._loads[agent_id]))
                if topic.loads[most] <= topic.cap:
                    break
                best = self._best_of(topic)
                number = self._number_for(topic, most, best)
                self._give(topic, number, topic.first(number, best))

    def give_to_those_who_came(self, came: Sequence[Candidate]) -> None:
        """First the mean of each topic, rounded down, then as much as the mean of all: what they had before, else what
        the ring names them for.

        Without the first, a topic of which they took nothing would stay on the others, and many such at once would be
        over their caps when the next agent comes."""
        for candidate in came:
            for topic in self._topics:
                if candidate.agent_id in topic.pool.members:
                    self._give_the_mean_of(topic, candidate.agent_id)
        ids = {candidate.agent_id for candidate in came}
        for candidate in came:
            share = self._share(candidate)
            if self._loads[candidate.agent_id] >= share:
                continue
            donors = _Donors(candidate.agent_id, self._topics, ids)
            while self._loads[candidate.agent_id] < share:
                move = donors.next(self._loads)
                if move is None:
                    break
                self._give(*move, candidate.agent_id)

    def keep_a_group_within_its_cap(self, name: str, *, joined: int, left: int, agents_before: int) -> None:
        """Deleted topics may have left an agent with more than it. As far as what an agent's coming and going may move
        reaches; nothing else takes anything from anybody."""
        group = self.groups[name]
        may_move = group_cap(group.partitions * joined, len(group.agent_ids))
        may_move += group_cap(group.partitions * left, agents_before) if left else 0
        may_move -= sum(1 for key in self.changes if self._before[key])
        while may_move > 0:
            donors = [agent_id for agent_id in group.agent_ids if self._loads[agent_id] > group.cap]
            move = self._relief(donors, group) if donors else None
            if move is None:
                break
            self._give(*move)
            may_move -= 1

    def _give_the_mean_of(self, topic: _Topic, newcomer: str) -> None:
        """From those that have more than that. Each of them has one more, as the topic is within its cap by now."""
        if topic.loads[newcomer] >= topic.mean:
            return

        def rank(number: int) -> tuple[int, int, int]:
            return topic.claim(number, newcomer), -self._loads[topic.owners[number]], number

        for number in sorted(topic.owners, key=rank):
            if topic.loads[topic.owners[number]] > topic.mean:
                self._give(topic, number, newcomer)
                if topic.loads[newcomer] == topic.mean:
                    break

    # --- choices ---

    def _share(self, candidate: Candidate) -> int:
        """What one that came is to have: the mean of its group, but no more than the mean of what it may lead."""
        group = self.groups.get(candidate.agent_group)
        if group is None:
            return 0
        by_agents: Counter[int] = Counter()
        for topic in self._topics:
            if candidate.agent_id in topic.pool.members:
                by_agents[len(topic.pool.agent_ids)] += len(topic.owners)
        return min(group.mean, floor(sum(Fraction(partitions, agents) for agents, partitions in by_agents.items())))

    def _best_of(self, topic: _Topic) -> list[str]:
        """Of the agents below the topic's cap those that have least of the topic, and of these those that have least;
        one that has as much as its group's cap comes last."""
        cap = self.groups[topic.group].cap
        best: list[str] = []
        least: tuple[bool, int, int] | None = None
        for agent_id, load in topic.loads.items():
            if load >= topic.cap:
                continue
            has = self._loads[agent_id]
            rank = (has >= cap, load, has)
            if least is None or rank < least:
                best, least = [agent_id], rank
            elif rank == least:
                best.append(agent_id)
        return best

    @staticmethod
    def _number_for(topic: _Topic, owner: str, receivers: Collection[str]) -> int:
        """One that a receiver had before, or else that the ring names a receiver for, or else the last."""
        numbers = sorted(number for number, held_by in topic.owners.items() if held_by == owner)
        had = (number for number in numbers if topic.formers.get(number) in receivers)
        named = (number for number in numbers if topic.first(number, topic.pool.members) in receivers)
        return next(chain(had, named), numbers[-1])

    def _relief(self, donors: Sequence[str], group: _Group) -> tuple[_Topic, int, str] | None:
        """What one that has too much can give to one that has less, without making a topic uneven."""
        for donor in sorted(donors, key=lambda agent_id: (-self._loads[agent_id], agent_id)):
            for topic in self._topics:
                if not topic.loads.get(donor):
                    continue
                receivers = [
                    agent_id
                    for agent_id, load in topic.loads.items()
                    if load < topic.loads[donor] and self._loads[agent_id] < min(group.cap, self._loads[donor] - 1)
                ]
                if receivers:
                    least = min(self._loads[agent_id] for agent_id in receivers)
                    receivers = [agent_id for agent_id in receivers if self._loads[agent_id] == least]
                    number = self._number_for(topic, donor, receivers)
                    return topic, number, topic.first(number, receivers)
        return None

    def _take_back(self, topic: _Topic, number: int) -> None:
        owner = topic.owners[number]
        if owner:
            topic.loads[owner] -= 1
            self._loads[owner] -= 1
        topic.owners[number] = ""
        self.changes.pop((topic.name, number), None)

    def _give(self, topic: _Topic, number: int, to: str) -> None:
        self._take_back(topic, number)
        topic.owners[number] = to
        topic.loads[to] += 1
        self._loads[to] += 1
        if self._before[topic.name, number] != to:
            self.changes[topic.name, number] = to


class _Donors:
    """What the others own that one agent that came could have, by owner, in the order in which it would take it."""

    def __init__(self, newcomer: str, topics: Iterable[_Topic], came: Collection[str]) -> None:
        self._newcomer = newcomer
        found: dict[str, list[tuple[int, _Topic, int]]] = {}
        for topic in topics:
            if newcomer in topic.pool.members:
                for number, owner in topic.owners.items():
                    if owner not in came:
                        found.setdefault(owner, []).append((topic.claim(number, newcomer), topic, number))
        self._found = {owner: iter(sorted(partitions, key=lambda each: each[0])) for owner, partitions in found.items()}

    def next(self, loads: Mapping[str, int]) -> tuple[_Topic, int] | None:
        """From the one that has most, if that has more than the one that came would have with it."""
        while self._found:
            owner = max(self._found, key=lambda agent_id: (loads[agent_id], agent_id))
            if loads[owner] < loads[self._newcomer] + 2:
                return None
            for _, topic, number in self._found[owner]:
                # What it has more of than the newcomer: and what it has not now, it will not have later.
                if topic.loads[owner] > topic.loads[self._newcomer]:
                    return topic, number
            del self._found[owner]
        return None
