"""The benchmarks run and measure the stated work; their times are not tested here."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks import (
    hostile_input,
    languages,
    languages_cases,
    languages_peers,
    message_cases,
    render_docs,
    report,
    results,
    segment,
    timing,
)
from benchmarks.__main__ import NAMES, save
from benchmarks.process_tree import tree_seconds
from benchmarks.report import Figure
from kafka_msgs import CreateDelegationTokenResponse, HeartbeatResponse, KafkaMsgsError
from kafka_msgs.log.summary import read_summary


@pytest.fixture
def peers() -> Any:
    """The adapters of other libraries, if these are installed."""
    return pytest.importorskip("benchmarks.peers", reason="the benchmarks need the extra bench")


OTHER_HAS = "HeartbeatResponse.4"
OTHER_LANGUAGE = f"""
import sys
print("{OTHER_HAS}", flush=True)
for line in sys.stdin:
    print(1000, flush=True)
"""


@pytest.fixture
def quick_languages(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The language benchmark with one call per round."""
    if sys.platform != "linux":
        pytest.skip("the processor time of other processes is read as Linux has it")
    monkeypatch.setattr(languages, "_WARM_UP", 0.0)
    monkeypatch.setattr(languages, "_SHORTEST", 0.0)
    monkeypatch.setattr(languages, "_COLD_CALLS", 1)
    return languages


def test_contents_are_of_one_size_and_differ_as_they_say() -> None:
    partitions = {}
    for name in message_cases.CONTENTS:
        message = message_cases.metadata(name)
        partitions[name] = [each for topic in message.topics for each in topic.partitions]
        assert (len(message.topics), len(partitions[name])) == (100, 1200)
    assert len({each.replica_nodes for each in partitions["fixed"]}) == 1
    assert all(each.replica_nodes == each.isr_nodes for each in partitions["varied"])
    assert len({each.leader_epoch for each in partitions["varied"]}) > 500
    assert {each.leader_id for each in partitions["varied"]} == set(range(1001, 1021))
    assert {each.leader_id for each in partitions["small"]} == set(range(20))
    arrays = [array for each in partitions["worst"] for array in (each.replica_nodes, each.isr_nodes)]
    assert len(set(arrays)) == len(arrays)


def test_populated_messages_are_comparable_with_every_peer(peers: Any) -> None:
    message = message_cases.populated(HeartbeatResponse, 4)
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
    times = timing.fastest({"short": lambda: None, "long": lambda: sum(range(20_000))}, rounds=3)
    assert 0 < times["short"] < times["long"]


def test_peak_memory_sees_what_is_let_go_again() -> None:
    assert 1_000_000 <= timing.peak_memory(lambda: len(bytes(1_000_000))) < 1_100_000


@pytest.mark.parametrize(
    ("value", "at_most", "verdict"),
    [(2.0, False, "MISSED"), (2.5, False, "reached"), (3.5, False, "stretch"), (2.0, True, "stretch")],
)
def test_figures_are_judged_by_their_targets(value: float, at_most: bool, verdict: str) -> None:
    assert Figure("", value, target=2.3, stretch=3.2 if not at_most else 2.0, at_most=at_most).verdict == verdict


def test_processor_time_of_children_counts_while_they_run_and_after() -> None:
    program = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    before = tree_seconds()
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert tree_seconds() - before >= 0.25
        child.communicate(b"\n")
    assert tree_seconds() - before >= 0.25


@pytest.mark.parametrize("kind", hostile_input.INPUTS, ids=lambda kind: kind.name)
def test_hostile_inputs_are_in_two_sizes_and_come_to_an_end(kind: hostile_input.Hostile) -> None:
    small, large = kind.make(kind.small), kind.make(kind.large)
    assert sum(map(len, large)) > 3 * sum(map(len, small))
    assert hostile_input.outcome(kind, small) == kind.ends


def test_hostile_errors_of_others_are_not_swallowed() -> None:
    class Broken:
        @staticmethod
        def decode(data: bytes, version: int) -> None:
            raise RuntimeError("not of the library")

    kind = hostile_input.Hostile("broken", "", Broken, 0, lambda n: [bytes(n)], 1, 4)  # type: ignore[arg-type]
    assert not issubclass(RuntimeError, KafkaMsgsError)
    with pytest.raises(RuntimeError, match="not of the library"):
        hostile_input.outcome(kind, [b""])


@pytest.mark.parametrize("name", ["codec_metadata", "scan", "import_time"])
@pytest.mark.usefixtures("peers")
def test_benchmarks_print_their_figures(name: str) -> None:
    printed = io.StringIO()
    figures = import_module(f"benchmarks.{name}").run(Console(file=printed, width=200), 1)
    assert [figure.what for figure in figures if figure.what not in printed.getvalue()] == []
    assert all(figure.value >= 0 for figure in figures)


@pytest.mark.usefixtures("peers")
@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
def test_columns_are_measured_against_rows_that_others_decode_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = import_module("benchmarks.columns")
    monkeypatch.setattr(columns, "ROWS", 50)
    monkeypatch.setattr(columns, "METADATA", 20)
    monkeypatch.setattr(columns, "RECORDS", 50)
    printed = io.StringIO()
    figures = columns.run(Console(file=printed, width=200), 1)
    assert [figure.what for figure in figures if figure.what not in printed.getvalue()] == []
    decoded = columns.kafka_python_decoder().decode(columns.offsets(3)[2], version=4, header=False)
    assert decoded.commit_timestamp == 1_700_000_000_002


@pytest.mark.usefixtures("peers")
def test_every_benchmark_can_be_named() -> None:
    assert all(callable(import_module(f"benchmarks.{name}").run) for name in NAMES)


def test_the_readme_lists_every_benchmark() -> None:
    page = (results.DOCS.parent / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE)) == sorted(NAMES)


def test_stored_runs_have_the_names_of_benchmarks() -> None:
    assert set(results.benchmarks()) <= set(NAMES)


def test_random_messages_hold_what_every_library_has_a_type_for() -> None:
    messages = [message_cases.randomized(HeartbeatResponse, 4, seed) for seed in range(50)]
    assert {each.error_code for each in messages} == {0}
    leases = [message_cases.randomized(CreateDelegationTokenResponse, 3, seed).max_timestamp_ms for seed in range(50)]
    assert 0 <= min(leases) < max(leases) < 2**40


def test_a_process_that_holds_trees_tells_their_time_and_memory(peers: Any) -> None:
    held_trees = import_module("benchmarks.held_trees")
    if not held_trees._STATISTICS.exists():
        pytest.skip("a process cannot learn its memory here")
    seconds, memory = held_trees._in_a_process(peers.OURS[0], "small")
    assert 0 < seconds < 1
    assert 100_000 < memory < 1_000_000


def test_languages_without_their_tools_are_named(quick_languages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    printed = io.StringIO()
    found = quick_languages.run(Console(file=printed, width=200), 1)
    for tools in ("Java: not measured, since there is no java and no mvn", "Go: not measured", "Rust: not measured"):
        assert tools in printed.getvalue()
    assert {figure.unit for figure in found} == {"", "us"}
    assert sum(figure.unit == "us" for figure in found) == 2 * 2 * len(languages_cases.cases())
    assert all(figure.value >= 0 for figure in found)


def test_languages_take_part_with_the_messages_that_they_have(quick_languages: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(OTHER_LANGUAGE)
    language = languages_peers.Language("Other", (), lambda: [sys.executable, str(other)])
    files = {"HeartbeatResponse.4": bytes(7), "OffsetCommitValue.3": bytes(22)}
    times = quick_languages.measured([languages_peers.LANGUAGES[0], language], files, 2)
    assert list(times) == [
        (caches, direction, name) for name in files for direction in ("decode", "encode") for caches in ("warm", "cold")
    ]
    assert all(
        (set(each.seconds) - {"kafka-msgs"} == {"Other"}) == (cell[2] in OTHER_HAS) for cell, each in times.items()
    )
    assert times["cold", "encode", OTHER_HAS].seconds["Other"] == 1e-6


def test_a_language_whose_program_ends_is_an_error(tmp_path: Path) -> None:
    with (
        languages_peers.Peer([sys.executable, "-c", "print('one')"], tmp_path) as peer,
        pytest.raises(languages_peers.PeerError, match="ended with status 0"),
    ):
        peer.cold("decode", "one")


def test_languages_are_judged_by_the_messages_that_they_have() -> None:
    sizes = {"MetadataResponse.12": 50_000, "FetchResponse.17": 20_000, "HeartbeatResponse.4": 7}
    ours = dict.fromkeys(sizes, report.Times({"kafka-msgs": 1.0, "Java": 0.5, "Go": 2.0}))
    ours["HeartbeatResponse.4"] = report.Times({"kafka-msgs": 1.0, "Java": 0.1, "Go": 0.6})
    times = {("warm", direction, name): each for direction in ("decode", "encode") for name, each in ours.items()}
    assert {each.what: each.value for each in languages.verdicts(sizes, times)} == {
        "decode: messages of nine that take longer in Go": 2,
        "decode: Go takes (our worst)": 0.6,
        "decode, MetadataResponse.12: Java takes": 0.5,
        "decode, other large messages: Java takes (our worst)": 0.5,
        "encode, MetadataResponse.12: the fastest of the others takes": 0.5,
        "encode, FetchResponse.17: the fastest of the others takes": 0.5,
    }


@pytest.mark.usefixtures("peers")
def test_parts_are_measured_warm_and_cold_without_java_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("benchmarks.timing._EVICTED", 1000)
    printed = io.StringIO()
    found = import_module("benchmarks.field_access").run(Console(file=printed, width=200), 1)
    assert "no java and no mvn here" in printed.getvalue()
    assert {figure.what.split(", ")[1] for figure in found} == {"warm", "cold"}
    assert all(figure.value > 0 for figure in found)


def test_a_segment_is_scanned_without_java_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    summary = read_summary(segment.write_segment(tmp_path, 3_000_000, 2**14))
    assert summary.errors == 0
    assert 2_900_000 < summary.bytes <= 3_000_000
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(segment, "LARGE", 2**21)
    printed = io.StringIO()
    figures = segment.run(Console(file=printed, width=200), 1)
    assert "no java and no mvn here" in printed.getvalue()
    assert all(figure.value > 0 for figure in figures if figure.unit == "GB/s")


def test_saved_runs_are_summed_up_by_their_median(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MEASURED", tmp_path / "runs.jsonl")
    for value in (3.0, 5.0, 9.0):
        save(results.MEASURED, "speed", [Figure("c, decode: peer takes", value, target=6)])
    save(results.MEASURED, "other", [Figure("else", 1)])
    cells = ("c, decode: peer takes", "5.00x", "3.00x to 9.00x", "at least 6.00x", "missed")
    assert [each.cells() for each in results.summaries("speed")] == [cells]
    forms = ("missed", "matrix speed", "list speed", "list other")
    written = render_docs.written(
        "".join(f"<!-- figures: {form} -->\nold\n<!-- end of figures -->\n" for form in forms)
    )
    assert "| c, decode: peer takes | 5.00x | 3.00x to 9.00x | at least 6.00x |\n" in written
    assert "| what | peer |\n| --- | --- |\n| c, decode | 5.00 |\n" in written
    assert "| at least 6.00x | missed |\n" in written
    assert "| what | median | range |\n| --- | --- | --- |\n| else | 1.00x |  |\n" in written
    assert "old" not in written


def test_the_table_of_languages_has_a_place_for_a_message_that_one_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "MEASURED", tmp_path / "runs.jsonl")
    took = [Figure("M.1: bytes", 7, ""), Figure("cold, decode, M.1: kafka-msgs", 2.5, "us")]
    save(results.MEASURED, "languages", [*took, Figure("cold, decode, M.1: Go takes", 0.5)])
    written = render_docs.written("<!-- figures: languages cold -->\n<!-- end of figures -->\n")
    assert "| M.1 | 7 | 2.50 | - | 0.50 | - | - | - | - | - |\n" in written


def test_the_page_of_figures_shows_what_was_measured() -> None:
    assert render_docs.main(["--check"]) == 0
