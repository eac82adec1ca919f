"""The highly available task assignor, which keeps tasks close to their state (KIP-1071)."""

from __future__ import annotations

from math import inf

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.groups.assignors.highly_available import assign_highly_available
from kafka_msgs.groups.assignors.spec import AssignmentMemberSpec, StreamsSpec, SubtopologySpec, TaskAssignment

LAG = 10_000


def _tasks(*partitions: int) -> dict[str, tuple[int, ...]]:
    return {"0": partitions} if partitions else {}


def _member(
    process: str, active: tuple[int, ...] = (), standby: tuple[int, ...] = (), **offsets: int
) -> AssignmentMemberSpec:
    """Return a member; ``t2=5`` is the offset sum 5 of task 2."""
    sums = {"0": {int(task[1:]): offset for task, offset in offsets.items()}}
    return AssignmentMemberSpec(process_id=process, active=_tasks(*active), standby=_tasks(*standby), offsets=sums)


def _spec(
    members: dict[str, AssignmentMemberSpec], tasks: int, *, end: int | None = None, **options: int
) -> StreamsSpec:
    if end is not None:
        first = next(iter(members))
        ends = {"0": dict.fromkeys(range(tasks), end)}
        members = members | {first: evolve(members[first], end_offsets=ends)}
    return StreamsSpec(
        members=members,
        subtopologies=[SubtopologySpec("0", tasks, stateful=True)],
        acceptable_recovery_lag=LAG,
        **options,
    )


def test_a_new_member_warms_up_and_then_takes_over() -> None:
    # The example of the KIP: A and B are caught up, C joins; later C is caught up on task 2.
    caught_up = {f"t{task}": 100_000 for task in range(6)}
    members = {
        "A": _member("A", (0, 2, 4), (1, 3, 5), **caught_up),
        "B": _member("B", (1, 3, 5), (0, 2, 4), **caught_up),
        "C": _member("C"),
    }
    spec = _spec(members, 6, end=100_000, standby_replicas=1, warmup_replicas=2)

    joined = assign_highly_available(spec)

    assert joined == {
        "A": TaskAssignment(_tasks(0, 2, 3), _tasks(1, 5), {}),
        "B": TaskAssignment(_tasks(1, 4, 5), _tasks(2, 3), {}),
        "C": TaskAssignment({}, _tasks(0, 4), _tasks(2, 5)),
    }

    warm = evolve(spec, members=dict(spec.members) | {"C": _member("C", t2=95_000)})
    assert assign_highly_available(warm) == {
        "A": TaskAssignment(_tasks(0, 3), _tasks(1, 5), {}),
        "B": TaskAssignment(_tasks(1, 4, 5), _tasks(2, 3), {}),
        "C": TaskAssignment(_tasks(2), _tasks(0, 4), _tasks(5)),
    }


def test_y16_a_lag_that_is_just_acceptable_is_caught_up() -> None:
    members = {"a": _member("a", (0, 1), t0=50_000, t1=50_000), "b": _member("b", t1=50_000 - LAG)}

    assert assign_highly_available(_spec(members, 2, end=50_000))["b"].active == _tasks(1)
    assert assign_highly_available(_spec(members, 2, end=50_001))["b"].active == {}


def test_warm_up_tasks_are_limited_for_the_whole_group() -> None:
    members = {"a": _member("a", tuple(range(20))), "b": _member("b")}

    assigned = assign_highly_available(_spec(members, 20, warmup_replicas=2))

    assert assigned["a"].active == _tasks(*range(20))
    assert assigned["b"] == TaskAssignment({}, {}, _tasks(1, 3))


def test_without_an_end_offset_the_greatest_offset_runs_the_task() -> None:
    members = {"a": _member("a", t0=5), "b": _member("b", t0=9)}

    assigned = assign_highly_available(_spec(members, 1))

    assert assigned["b"].active == _tasks(0)
    assert assigned["a"].warmup == _tasks(0)


def test_tasks_of_a_group_without_state_are_spread() -> None:
    spec = StreamsSpec(
        members={"a": _member("p", (0, 1, 2, 3)), "b": _member("q")}, subtopologies=[SubtopologySpec("0", 4)]
    )

    assigned = assign_highly_available(spec)

    assert {member: each.active for member, each in assigned.items()} == {"a": _tasks(0, 2), "b": _tasks(1, 3)}


@st.composite
def _groups(draw: st.DrawFn) -> StreamsSpec:
    tasks = draw(st.integers(1, 12))
    numbers = st.lists(st.integers(0, tasks - 1), unique=True).map(tuple)
    members = {
        f"m{number}": evolve(
            _member(f"p{draw(st.integers(0, 3))}", draw(numbers), draw(numbers)),
            offsets={"0": dict.fromkeys(draw(numbers), draw(st.integers(0, 30_000)))},
        )
        for number in range(draw(st.integers(1, 6)))
    }
    end = draw(st.none() | st.integers(0, 30_000))
    return _spec(
        members, tasks, end=end, standby_replicas=draw(st.integers(0, 2)), warmup_replicas=draw(st.integers(0, 3))
    )


@given(_groups())
def test_roles_are_kept_apart(spec: StreamsSpec) -> None:
    assigned = assign_highly_available(spec)

    processes = {member.process_id for member in spec.members.values()}
    held: dict[str, list[int]] = {process: [] for process in processes}
    for member, each in assigned.items():
        for tasks in (each.active, each.standby, each.warmup):
            held[spec.members[member].process_id] += tasks.get("0", ())
    assert all(len(set(tasks)) == len(tasks) for tasks in held.values())
    count = spec.subtopologies[0].partitions
    assert sorted(task for each in assigned.values() for task in each.active.get("0", ())) == list(range(count))
    standbys = min(spec.standby_replicas, len(processes) - 1)
    assert sum(len(each.standby.get("0", ())) for each in assigned.values()) == count * standbys
    assert sum(len(each.warmup.get("0", ())) for each in assigned.values()) <= spec.warmup_replicas


@given(_groups())
def test_the_order_of_members_plays_no_part(spec: StreamsSpec) -> None:
    turned = evolve(spec, members=dict(list(spec.members.items())[::-1]))

    assert assign_highly_available(turned) == assign_highly_available(spec)


def _lag(spec: StreamsSpec, process: str, task: int) -> float:
    """Return the lag of a process on a task; infinite if it is unknown."""
    members = spec.members.values()
    offsets = [each.offsets["0"][task] for each in members if each.process_id == process and task in each.offsets["0"]]
    ends = [end for each in members if (end := each.end_offsets.get("0", {}).get(task)) is not None]
    return max(ends) - max(offsets) if offsets and ends else inf


@given(_groups())
def test_a_warm_up_task_is_not_caught_up(spec: StreamsSpec) -> None:
    assigned = assign_highly_available(spec)

    for member, each in assigned.items():
        for task in each.warmup.get("0", ()):
            assert _lag(spec, spec.members[member].process_id, task) > LAG


@given(_groups())
def test_a_task_runs_where_it_can_go_on_if_there_is_such_a_place(spec: StreamsSpec) -> None:
    """Such a process is caught up, or it runs the task without any reported offsets."""
    assigned = assign_highly_available(spec)

    members = spec.members.values()
    for member, each in assigned.items():
        mine = spec.members[member].process_id
        for task in each.active.get("0", ()):
            running = {other.process_id for other in members if task in other.active.get("0", ())}
            reported = {other.process_id for other in members if task in other.offsets["0"]}
            ready = {other.process_id for other in members if _lag(spec, other.process_id, task) <= LAG}
            fit = ready | (running - reported)
            assert not fit or mine in fit


@given(_groups())
def test_a_group_that_catches_up_comes_to_rest_in_balance(spec: StreamsSpec) -> None:
    """In each round, all members own their assignments, and their stores catch up."""
    count = spec.subtopologies[0].partitions
    spec = evolve(spec, warmup_replicas=max(1, spec.warmup_replicas))
    ends = {"0": dict.fromkeys(range(count), 100_000)}
    for _ in range(2 * count + 3):
        assigned = assign_highly_available(spec)
        members = {
            member: evolve(
                spec.members[member],
                active=each.active,
                standby=each.standby,
                warmup=each.warmup,
                offsets={"0": dict.fromkeys(_held(each), 100_000)},
                end_offsets=ends,
            )
            for member, each in assigned.items()
        }
        if members == spec.members:
            break
        spec = evolve(spec, members=members)
    else:
        raise AssertionError("the group does not come to rest")

    assert not any(each.warmup for each in assigned.values())
    if len({member.process_id for member in spec.members.values()}) == len(spec.members):
        sizes = [len(each.active.get("0", ())) for each in assigned.values()]
        assert max(sizes) - min(sizes) <= 1


def _held(each: TaskAssignment) -> list[int]:
    return [task for tasks in (each.active, each.standby, each.warmup) for task in tasks.get("0", ())]


@given(_groups(), st.integers(1, 20))
def test_tasks_without_state_are_spread_beside_those_with_state(spec: StreamsSpec, tasks: int) -> None:
    both = evolve(spec, subtopologies=[*spec.subtopologies, SubtopologySpec("1", tasks)])

    assigned = assign_highly_available(both)

    given = sorted(task for each in assigned.values() for task in each.active.get("1", ()))
    assert given == list(range(tasks))
    assert not any("1" in each.standby or "1" in each.warmup for each in assigned.values())
