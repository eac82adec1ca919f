"""The demo works as promised, on the committed recordings, with at most two extras installed.

Without the Spark extras it reports that and shows the other parts.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from docs.demo import tour
from docs.demo.demo import COLUMNS, ROOT, run
from docs.demo.demo import tour as show_tour
from docs.demo.presenter import Stage
from kafka_msgs import ConsumerProtocolAssignment, ConsumerProtocolSubscription, HeartbeatRequest

NOT_NEEDED = ("hypothesis", "pytest", "pyspark")


TWO_SCREENS = 80


@pytest.fixture(scope="module")
def sessions() -> list[str]:
    """The lines that ``make demo`` prints."""
    screen = io.StringIO()
    show_tour(Console(file=screen, width=COLUMNS, highlight=False))
    return screen.getvalue().splitlines()


def test_the_first_part_fits_on_two_screens(sessions: list[str]) -> None:
    assert len(sessions) <= TWO_SCREENS
    assert max(map(len, sessions)) <= COLUMNS == tour.COLUMNS


def test_the_first_part_explains_bytes_runs_a_test_and_reads_lag(sessions: list[str]) -> None:
    rows = [line.split() for line in sessions]
    assert [row[-1] for row in rows if "topics[0].partitions[0].committed_offset" in row] == ["4"]
    assert any(line.startswith("Error: OffsetFetchResponse v2: topics[0].partitions at byte 12:") for line in sessions)
    assert any(line.startswith("1 passed") for line in sessions)
    assert [row[5] for row in rows if row[:1] == ["audit"]] == ["6", "6"]


def test_a_command_of_the_first_part_that_fails_ends_it() -> None:
    session = tour.Session("title", "sentence", ("kafka-msgs no-such-command",))
    with pytest.raises(SystemExit, match="kafka-msgs no-such-command: exit status 2"):
        list(tour.play(session))


def test_the_test_of_the_first_part_is_the_one_in_the_readme() -> None:
    (session,) = (session for session in tour.SESSIONS if session.file is not None)
    assert session.file is not None
    assert session.file[1] in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shown() -> tuple[str, Mapping[str, Any]]:
    screen = io.StringIO()
    names = run(Console(file=screen, width=COLUMNS, highlight=False))
    return screen.getvalue(), names


def test_sections_are_numbered_and_fit_the_width(shown: tuple[str, Any]) -> None:
    lines = shown[0].splitlines()
    headings = [line.split(" ─")[0] for line in lines if line.endswith("──") and line[:1].isdigit()]
    assert headings == [
        "1. Compile a definition",
        "2. Decode what clients and broker said",
        "3. Look at every byte",
        "4. Read the offsets topic",
        "5. Ask for all offsets of a group (KIP-88)",
        "6. Ask a log directory",
        "7. Ask a whole log directory (Spark)",
    ]
    assert max(len(line) for line in lines) <= COLUMNS


def test_compiled_heartbeat_is_the_generated_one_and_reads_the_recorded_one(shown: tuple[str, Any]) -> None:
    text, names = shown
    values: dict[str, Any] = {"group_id": "tea", "generation_id": 7, "member_id": "m-1"}
    assert names["encoded"] == {version: HeartbeatRequest(**values).encode(version) for version in (2, 3, 4)}
    assert "04 74 65 61 00 00 00 07 04 6d 2d 31 00 00" in text
    assert 'group_instance_id: str | None = field("GroupInstanceId", "string", "3+", nullable="3+"' in text


def test_every_recorded_frame_is_decoded_and_written_back(shown: tuple[str, Any]) -> None:
    text, names = shown
    frames = 2 * len(names["pairs"])
    assert names["same"] == frames > 500
    assert f"{frames} of {frames} frames came out byte for byte." in text


def test_tables_show_requests_of_two_libraries_and_the_errors_of_the_broker(shown: tuple[str, Any]) -> None:
    rows = [line.split() for line in shown[0].splitlines()]
    joined = [row for row in rows if "billing-console" in row and "JoinGroup" in row]
    assert [row[4:6] for row in joined] == [["9", "2,1"], ["9", "2,1"]]
    assert joined[0][-1] == "MEMBER_ID_REQUIRED"
    assert any("payments-trans…" in row and row[-1] == "CONCURRENT_TRANSACTIONS" for row in rows)
    assert ["12", "Heartbeat", "3,", "4", "5", "468", "78"] in rows


def test_dump_explains_each_byte_and_damage_is_located(shown: tuple[str, Any]) -> None:
    text = shown[0]
    assert "coordinators[0].error_message  compact nullable string  ''" in text
    assert "TruncatedError: FindCoordinatorResponse v6: coordinators[0].port at byte 32:" in text


def test_offsets_records_are_typed_down_to_the_consumer_protocol(shown: tuple[str, Any]) -> None:
    text, names = shown
    assert len(names["keys"]) == len(names["values"]) == len(names["records"]) > 50
    assert names["values"].count(None) > 10
    assert isinstance(names["subscription"].message, ConsumerProtocolSubscription)
    assert isinstance(names["assignment"].message, ConsumerProtocolAssignment)
    assert names["assignment"].message.assigned_partitions[0].partitions == (0, 1)
    for kind in ("OffsetCommit ", "GroupMetadata ", "ConsumerGroupMetadata ", "ShareGroupMetadata ", "StreamsGroup"):
        assert f"\n{kind}" in text


def test_kip88_question_is_the_recorded_one_and_wrong_versions_are_refused(shown: tuple[str, Any]) -> None:
    text, names = shown
    assert names["ours"] == names["recorded"].request.payload
    assert "the same bytes" in text
    offsets = {
        (topic.name, each.partition_index): each.committed_offset
        for topic in names["answer"].topics
        for each in topic.partitions
    }
    assert offsets == {("orders", 0): 4, ("orders", 1): 0}
    assert "EncodeError: OffsetFetchRequest v1: topics: None, which this version does not allow" in text
    assert "UnsupportedFieldError: OffsetFetchRequest v8: group_id" in text
    assert "UnsupportedVersionError: OffsetFetchRequest has no version 11; it has 1-10" in text


@pytest.mark.spark
def test_a_whole_log_directory_tells_the_lag_of_an_empty_group_and_the_tasks_of_a_streams_group(
    shown: tuple[str, Any],
) -> None:
    text, names = shown
    rows = [line.split() for line in text.splitlines()]
    assert ["audit", "classic", "Empty", "0", "2", "12"] in [row[:6] for row in rows]
    assert sum(row[:1] == ["totals"] and row[2:] == ["current", "standby", "1"] for row in rows) == 2
    for page, *others in (names["files"], names["pages"]):
        assert page.name == "report.html"
        assert next(file for file in others if file.suffix == ".svg").read_text(encoding="utf-8").startswith("<svg ")


@pytest.mark.spark
def test_demo_runs_as_a_script_from_anywhere_without_the_tools_of_developers(tmp_path: Path) -> None:
    script = ROOT / "docs" / "demo" / "demo.py"
    blocked = "sys.modules.update(dict.fromkeys(sys.argv[2:]))"
    code = f"import runpy, sys; {blocked}; runpy.run_path(sys.argv[1], run_name='__main__')"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(script), *NOT_NEEDED, "--all"],
        cwd=tmp_path,
        env=environment | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "frames came out byte for byte" in done.stdout
    assert "NOT RUN: this section needs pyspark: pip install 'kafka-msgs[pipeline]'" in done.stdout


def test_stage_fails_when_an_error_that_it_announces_does_not_come() -> None:
    with pytest.raises(AssertionError, match="not refused"):
        Stage(Console(file=io.StringIO()), {}).refused("1 + 1")


def test_the_demonstration_imports_no_test() -> None:
    for path in (ROOT / "docs" / "demo").glob("*.py"):
        assert not re.search(r"^\s*(from|import) tests\b", path.read_text(encoding="utf-8"), re.MULTILINE), path


def test_groups_in_one_process_are_those_of_the_sample(shown: tuple[str, Any]) -> None:
    text, names = shown
    assert {group.description.group_id: group.lag for group in names["found"].groups}["audit"] == 12
    assert "inspection  consumer" in text
