"""Server-side assignors compared with Kafka's own: the first assignment, and the assignment after a member left.

Both sides use the same groups: ten topics or subtopologies, two members per process. Kafka's assignors run in another
Java process with full JIT optimization, and then the assignors of kafka-msgs run in this process. Both sides prepare
member and topic data before the timing, and both measure CPU time. Needs Java and Maven; without them the benchmark is
skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from attrs import evolve
from rich.console import Console

from benchmarks.kafka_coordinator import PROTOCOL, ask, is_there
from benchmarks.report import Figure, print_figures, rows_table
from benchmarks.timing import fastest, peak_memory
from kafka_msgs.groups.assignors import CONSUMER_ASSIGNORS, SHARE_ASSIGNORS, TASK_ASSIGNORS
from kafka_msgs.groups.assignors.spec import (
    AssignmentMemberSpec,
    GroupSpec,
    MemberSpec,
    StreamsSpec,
    SubtopologySpec,
    TopicSubscription,
)

__all__ = ["run"]

SIZES: Final = ((10_000, 100), (100_000, 1_000))
PARTS: Final = 10
TARGETS: Final = {"sticky": 3.0, "uniform": 10.0, "range": 10.0}
MILLISECONDS: Final = 100.0
GROWTH: Final = 15.0
"""The limit for the growth of the time with ten times the tasks and members: near 10."""

Case = Callable[[], Any]


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures; return none without Java and Maven."""
    if not is_there(console, "Kafka's assignors"):
        return []
    names = [*TASK_ASSIGNORS.keys() & {"sticky"}, *CONSUMER_ASSIGNORS, *SHARE_ASSIGNORS]
    theirs = _kafka(names, rounds)
    table = rows_table("Assignors", "group", "Kafka ms, first", "member left", "ours ms, first", "member left")
    times: dict[tuple[str, int], tuple[float, float]] = {}
    figures = []
    for name in names:
        for tasks, members in SIZES:
            cases = _cases(name, tasks, members)
            seconds = fastest(cases, rounds)
            times[name, tasks] = (seconds["first"] * 1e3, seconds["member left"] * 1e3)
            row = (f"{each:,.1f}" for each in (*theirs[name, tasks], *times[name, tasks]))
            table.add_row(f"{name}, {tasks:,} x {members:,}", *row)
        figures += _figures(name, times, theirs)
    tasks, members = SIZES[-1]
    peak = peak_memory(_cases("sticky", tasks, members)["first"]) / 1e6
    figures.append(Figure(f"sticky, {tasks:,} x {members:,}: memory at most", peak, unit="MB", at_most=True))
    console.print(table)
    print_figures(console, "Assignors", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _figures(name: str, ours: Mapping[tuple[str, int], Any], theirs: Mapping[tuple[str, int], Any]) -> list[Figure]:
    """Return the figures of one assignor at the larger size, and the growth of its time."""
    small, large = (tasks for tasks, _ in SIZES)
    figures = []
    for place, moment in enumerate(("first", "member left")):
        what = f"{name}, {large:,} tasks, {moment}"
        mine, kafka = ours[name, large][place], theirs[name, large][place]
        figures.append(Figure(f"{what}: times Kafka's", mine / kafka, target=TARGETS.get(name), at_most=True))
        limit = MILLISECONDS if name in CONSUMER_ASSIGNORS else None
        figures.append(Figure(what, mine, unit="ms", target=limit, at_most=True))
        growth = Figure(f"{what}: times {small:,}", mine / ours[name, small][place], at_most=True)
        figures.append(evolve(growth, target=GROWTH) if name == "sticky" else growth)
    return figures


def _kafka(names: list[str], rounds: int) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the milliseconds of Kafka's assignors, by name and number of tasks."""
    sizes = [(name, tasks, members) for name in names for tasks, members in SIZES]
    lines = (
        {"assignor": name, "bench": {"tasks": tasks, "members": members, "rounds": rounds}}
        for name, tasks, members in sizes
    )
    answers = ask(lines, "assign")
    return {
        (name, tasks): (each["first_ms"], each["member_left_ms"])
        for (name, tasks, _), each in zip(sizes, answers, strict=True)
    }


def _cases(name: str, tasks: int, members: int) -> dict[str, Case]:
    if name in TASK_ASSIGNORS:
        return _streams_cases(name, tasks, members)
    assign = {**CONSUMER_ASSIGNORS, **SHARE_ASSIGNORS}[name]
    topics = tuple(UUID(bytes=sha256(f"t{number}".encode()).digest()[:16]) for number in range(PARTS))
    subscription = TopicSubscription(topics)
    spec = GroupSpec(
        members={f"member-{number:05d}": MemberSpec(subscription=subscription) for number in range(members)},
        partitions=dict.fromkeys(topics, tasks // PARTS),
        homogeneous=True,
    )
    assigned = assign(spec)
    kept = {
        key: evolve(member, assigned={topic: tuple(numbers) for topic, numbers in assigned[key].items()})
        for key, member in list(spec.members.items())[1:]
    }
    left = evolve(spec, members=kept)
    return {"first": lambda: assign(spec), "member left": lambda: assign(left)}


def _streams_cases(name: str, tasks: int, members: int) -> dict[str, Case]:
    assign = TASK_ASSIGNORS[name]
    spec = StreamsSpec(
        members={
            f"member-{number:05d}": AssignmentMemberSpec(process_id=f"process-{number // 2}")
            for number in range(members)
        },
        subtopologies=[SubtopologySpec(str(number), tasks // PARTS, number % 2 == 0) for number in range(PARTS)],
    )
    assigned = assign(spec)
    kept = {key: evolve(member, active=assigned[key].active) for key, member in list(spec.members.items())[1:]}
    left = evolve(spec, members=kept)
    return {"first": lambda: assign(spec), "member left": lambda: assign(left)}
