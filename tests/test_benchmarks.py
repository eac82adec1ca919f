"""The benchmarks run and measure what they say they do; their times are not judged here."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import pytest
from rich.console import Console

from benchmarks import content, hostile, measure
from benchmarks.__main__ import NAMES
from benchmarks.report import Figure
from kafka_msgs import HeartbeatResponse, KafkaMsgsError


@pytest.fixture
def peers() -> Any:
    """The adapters of other libraries, where these are installed."""
    return pytest.importorskip("benchmarks.peers", reason="the benchmarks need the extra bench")


def test_contents_are_of_one_size_and_differ_as_they_say() -> None:
    partitions = {}
    for name in content.CONTENTS:
        message = content.metadata(name)
        partitions[name] = [each for topic in message.topics for each in topic.partitions]
        assert (len(message.topics), len(partitions[name])) == (100, 1200)
    assert len({each.replica_nodes for each in partitions["fixed"]}) == 1
    assert all(each.replica_nodes == each.isr_nodes for each in partitions["varied"])
    assert len({each.leader_epoch for each in partitions["varied"]}) > 500
    arrays = [array for each in partitions["worst"] for array in (each.replica_nodes, each.isr_nodes)]
    assert len(set(arrays)) == len(arrays)


def test_populated_messages_are_comparable_with_every_peer(peers: Any) -> None:
    message = content.populated(HeartbeatResponse, 4)
    data = message.encode(4)
    cases = [
        peers.executor("python", message, 4),
        peers.kafka_python("HeartbeatResponse", 4, data),
        peers.kio(HeartbeatResponse, 4, data),
    ]
    assert [case.encode() if case else None for case in cases] == [data, data, data]


def test_a_peer_that_lacks_the_version_takes_no_part(peers: Any) -> None:
    assert peers.kafka_python("HeartbeatResponse", 99, b"") is None
    assert peers.kio(HeartbeatResponse, 99, b"") is None


def test_the_fastest_round_of_each_case_counts() -> None:
    times = measure.fastest({"short": lambda: None, "long": lambda: sum(range(20_000))}, rounds=3)
    assert 0 < times["short"] < times["long"]


def test_peak_memory_sees_what_is_let_go_again() -> None:
    assert 1_000_000 <= measure.peak_memory(lambda: len(bytes(1_000_000))) < 1_100_000


@pytest.mark.parametrize(
    ("value", "at_most", "verdict"),
    [(2.0, False, "MISSED"), (2.5, False, "reached"), (3.5, False, "stretch"), (2.0, True, "stretch")],
)
def test_figures_are_judged_by_their_targets(value: float, at_most: bool, verdict: str) -> None:
    assert Figure("", value, target=2.3, stretch=3.2 if not at_most else 2.0, at_most=at_most).verdict == verdict


@pytest.mark.parametrize("kind", hostile.INPUTS, ids=lambda kind: kind.name)
def test_hostile_inputs_are_in_two_sizes_and_come_to_an_end(kind: hostile.Hostile) -> None:
    small, large = kind.make(kind.small), kind.make(kind.large)
    assert sum(map(len, large)) > 3 * sum(map(len, small))
    assert hostile.outcome(kind, small) == kind.ends


def test_hostile_errors_of_others_are_not_swallowed() -> None:
    class Broken:
        @staticmethod
        def decode(data: bytes, version: int) -> None:
            raise RuntimeError("not of the library")

    kind = hostile.Hostile("broken", "", Broken, 0, lambda n: [bytes(n)], 1, 4)  # type: ignore[arg-type]
    assert not issubclass(RuntimeError, KafkaMsgsError)
    with pytest.raises(RuntimeError, match="not of the library"):
        hostile.outcome(kind, [b""])


@pytest.mark.parametrize("name", ["codec_metadata", "import_time"])
@pytest.mark.usefixtures("peers")
def test_benchmarks_print_their_figures(name: str) -> None:
    printed = io.StringIO()
    figures = import_module(f"benchmarks.{name}").run(Console(file=printed, width=200), 1)
    assert [figure.what for figure in figures if figure.what not in printed.getvalue()] == []
    assert all(figure.value >= 0 for figure in figures)


@pytest.mark.usefixtures("peers")
def test_every_benchmark_can_be_named() -> None:
    assert [callable(import_module(f"benchmarks.{name}").run) for name in NAMES] == [True] * 4
