"""Random groups to assign, in the oracle's JSON and in this library's classes.

Inputs form histories: the assignment of one input is the current assignment of the next, while members join, leave,
return with a new id or change their subscriptions, and topics grow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from hashlib import sha256
from random import Random
from typing import Any, Final
from uuid import UUID

from kafka_msgs.errors import AssignorError
from kafka_msgs.groups.assignors import CONSUMER_ASSIGNORS, SHARE_ASSIGNORS, TASK_ASSIGNORS
from kafka_msgs.groups.assignors.java_hash_order import hash_map_order
from kafka_msgs.groups.assignors.spec import (
    AssignmentMemberSpec,
    GroupSpec,
    MemberSpec,
    StreamsSpec,
    SubtopologySpec,
    TopicSubscription,
)

Command = dict[str, Any]
Answer = dict[str, Any]

PARTITIONS: Final = {**CONSUMER_ASSIGNORS, **SHARE_ASSIGNORS}
TASKS: Final = {name: TASK_ASSIGNORS[name] for name in ("sticky", "mock")}

ASSIGNORS: Final = [*PARTITIONS, *TASKS]

_SIZES: Final = (1, 1, 2, 2, 3, 4, 5, 7, 10, 16, 25, 40)
_STEPS: Final = 6


def ours(command: Command) -> Answer:
    """Return this library's result for a command of the oracle. Every error becomes ``{"error": True}``."""
    name = command["assignor"]
    try:
        if name in TASKS:
            return {
                member: {"active": _plain(given.active), "standby": _plain(given.standby)}
                for member, given in TASKS[name](streams_spec(command)).items()
            }
        names = {topic_id(topic["name"]): topic["name"] for topic in command["topics"]}
        spec = group_spec(command)
        return {
            member: {names[topic]: list(numbers) for topic, numbers in given.items()}
            for member, given in PARTITIONS[name](spec).items()
        }
    except AssignorError:
        return {"error": True}


def shown(command: Command, answer: Answer) -> Answer:
    """Return a result in a form whose equality includes the order of partitions.

    Unchanged assignments are sorted, because Kafka writes no record for them.
    """
    if command["assignor"] in TASKS or "error" in answer:
        return answer
    had = {each["id"]: _sorted(each.get("partitions", {})) for each in command["members"]}
    return {
        member: had[member] if had[member] == _sorted(given) else list(given.items())
        for member, given in answer.items()
    }


def _sorted(assigned: dict[str, list[int]]) -> list[tuple[str, list[int]]]:
    return sorted((topic, sorted(numbers)) for topic, numbers in assigned.items())


def topic_id(name: str) -> UUID:
    """Return the oracle's id of a topic."""
    return UUID(bytes=sha256(name.encode()).digest()[:16])


def _plain(tasks: Any) -> dict[str, list[int]]:
    return {subtopology: list(numbers) for subtopology, numbers in tasks.items()}


def group_spec(command: Command) -> GroupSpec:
    """Return the group spec of a command for ``uniform``, ``range`` or ``simple``."""
    assignable = command.get("assignable")
    return GroupSpec(
        members={
            each["id"]: MemberSpec(
                subscription=TopicSubscription(tuple(hash_map_order(map(topic_id, each["topics"])))),
                assigned={topic_id(topic): tuple(numbers) for topic, numbers in each.get("partitions", {}).items()},
                instance_id=each.get("instance"),
            )
            for each in command["members"]
        },
        partitions={topic_id(topic["name"]): topic["partitions"] for topic in command["topics"]},
        homogeneous=len({frozenset(each["topics"]) for each in command["members"]}) <= 1,
        assignable=assignable and {topic_id(topic): frozenset(numbers) for topic, numbers in assignable.items()},
    )


def streams_spec(command: Command) -> StreamsSpec:
    """Return the group spec of a command for a streams assignor."""
    return StreamsSpec(
        members={
            each["id"]: AssignmentMemberSpec(
                process_id=each["process"],
                active=each.get("active", {}),
                standby=each.get("standby", {}),
                warmup=each.get("warmup", {}),
                instance_id=each.get("instance"),
                offsets=_numbered(each.get("offsets", {})),
                end_offsets=_numbered(each.get("ends", {})),
            )
            for each in command["members"]
        },
        subtopologies=[
            SubtopologySpec(each["id"], each["partitions"], each["stateful"]) for each in command["subtopologies"]
        ],
        standby_replicas=int(command.get("configs", {}).get("num.standby.replicas", 0)),
    )


def _numbered(offsets: dict[str, dict[str, int]]) -> dict[str, dict[int, int]]:
    return {key: {int(number): offset for number, offset in each.items()} for key, each in offsets.items()}


def histories(name: str, random: Random) -> Generator[Command, Answer, None]:
    """Yield endless commands for an assignor; the caller sends back the result of each."""
    while True:
        yield from _streams_history(name, random) if name in TASKS else _group_history(name, random)


def compare(name: str, random: Random, count: int, ask: Callable[[Command], Answer]) -> list[tuple[Command, Answer]]:
    """Return the commands, of ``count``, whose results differ between oracle and library, with the oracle's results."""
    different = []
    source = histories(name, random)
    command = next(source)
    for _ in range(count):
        answer = ask(command)
        if "error" in answer:
            answer = {"error": True}
        if shown(command, answer) != shown(command, ours(command)):
            different.append((command, answer))
        command = source.send(answer)
    return different


def _size(random: Random) -> int:
    return random.choice(_SIZES)


def _new_id(random: Random) -> str:
    return random.choice([f"m{random.randrange(1000)}", str(UUID(int=random.getrandbits(128)))])


def _group_history(name: str, random: Random) -> Generator[Command, Answer, None]:
    topics = {f"t{random.randrange(10_000)}": random.choice([0, *_SIZES, 70]) for _ in range(_size(random))}
    mixed = random.random() < 0.5
    members = _distinct(_group_member(random, list(topics), mixed) for _ in range(_size(random)))
    if random.random() < 0.3:
        _scatter(random, topics, members, shared=name == "simple")
    for _ in range(random.randint(1, _STEPS)):
        command: Command = {
            "assignor": name,
            "topics": [{"name": topic, "partitions": count} for topic, count in topics.items()],
            "members": members,
        }
        if name == "simple" and random.random() < 0.3:
            command["assignable"] = _some(random, topics)
        answer = yield command
        members = _changed(random, [each | {"partitions": answer.get(each["id"], {})} for each in members])
        members += [_group_member(random, list(topics), mixed) for _ in range(random.choice([0, 0, 1, 2, 5]))]
        if mixed:
            for each in random.sample(members, len(members) // 4):
                each["topics"] = random.sample(sorted(topics), random.randint(0, len(topics)))
        if random.random() < 0.3:
            grown = random.choice(list(topics))
            topics[grown] += random.choice([1, 3, 20])
        members = _distinct(members)


def _group_member(random: Random, topics: list[str], mixed: bool) -> Command:
    member: Command = {"id": _new_id(random), "topics": topics}
    if mixed:
        member["topics"] = random.sample(topics, random.randint(0, len(topics)))
    if random.random() < 0.3:
        member["instance"] = f"i{random.randrange(40)}"
    if random.random() < 0.2:
        member["rack"] = f"r{random.randrange(3)}"
    return member


def _scatter(random: Random, topics: dict[str, int], members: list[Command], *, shared: bool) -> None:
    """Assign partitions to random members, regardless of their subscriptions."""
    for topic, count in topics.items():
        numbers = list(range(count))
        random.shuffle(numbers)
        for number in numbers:
            for member in random.sample(members, min(len(members), random.choice([0, 1, 2]) if shared else 1)):
                member.setdefault("partitions", {}).setdefault(topic, []).append(number)


def _some(random: Random, topics: dict[str, int]) -> dict[str, list[int]]:
    return {
        topic: [number for number in range(count) if random.random() < 0.7]
        for topic, count in topics.items()
        if random.random() < 0.9
    }


def _changed(random: Random, members: list[Command]) -> list[Command]:
    """Return the members after some have left, and some have returned with a new id."""
    kept = [dict(each) for each in members if random.random() < 0.85] or members[:1]
    for each in kept:
        if "instance" in each and random.random() < 0.3:
            each["id"] = _new_id(random)
    if random.random() < 0.3:
        random.shuffle(kept)
    return kept


def _distinct(members: Iterable[Command]) -> list[Command]:
    return list({each["id"]: each for each in members}.values())


def _streams_history(name: str, random: Random) -> Generator[Command, Answer, None]:
    subtopologies: list[Command] = [
        {"id": key, "partitions": random.choice([0, *_SIZES]), "stateful": random.random() < 0.5}
        for key in random.sample([*map(str, range(12)), "a", "B", "é", "\U0001f600", "\uffee"], random.randint(1, 6))
    ]
    processes = [f"p{random.randrange(10_000)}" for _ in range(_size(random))]
    members = _distinct(_streams_member(random, processes) for _ in range(_size(random)))
    configs = random.choice([{}, {"num.standby.replicas": str(random.choice([0, 1, 1, 2, 3]))}])
    if name == "sticky" and random.random() < 0.3:
        _scatter_tasks(random, subtopologies, members)
    for _ in range(random.randint(1, _STEPS)):
        command: Command = {"assignor": name, "subtopologies": subtopologies, "members": members, "configs": configs}
        answer = yield command
        members = _changed(random, [each | answer.get(each["id"], {}) for each in members])
        members = _distinct(
            members + [_streams_member(random, processes) for _ in range(random.choice([0, 0, 1, 2, 5]))]
        )
        if random.random() < 0.3:
            for each in random.sample(members, len(members) // 2):
                each["offsets"] = _some_offsets(random, subtopologies)
        if random.random() < 0.2:
            subtopologies = [
                each | {"partitions": each["partitions"] + random.choice([0, 1, 8])} for each in subtopologies
            ]
        if random.random() < 0.1:
            configs = {"num.standby.replicas": str(random.randrange(4))}


def _streams_member(random: Random, processes: list[str]) -> Command:
    member: Command = {"id": _new_id(random), "process": random.choice(processes)}
    if random.random() < 0.3:
        member["instance"] = f"i{random.randrange(40)}"
    return member


def _scatter_tasks(random: Random, subtopologies: list[Command], members: list[Command]) -> None:
    """Assign tasks to random members: some to none, some to several, and some that do not exist."""
    for each in subtopologies:
        for number in range(each["partitions"] + 1):
            for role, counts in (("active", (0, 1, 1, 2)), ("standby", (0, 1, 2, 3))):
                for member in random.sample(members, min(len(members), random.choice(counts))):
                    member.setdefault(role, {}).setdefault(each["id"], []).append(number)
    for member in members:
        if random.random() < 0.3:
            member["offsets"] = _some_offsets(random, subtopologies)


def _some_offsets(random: Random, subtopologies: list[Command]) -> dict[str, dict[str, int]]:
    return {
        each["id"]: {
            str(number): random.choice([0, 5, 5, random.randrange(1000)])
            for number in range(each["partitions"])
            if random.random() < 0.4
        }
        for each in subtopologies
        if random.random() < 0.6
    }
