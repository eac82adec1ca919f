"""The history of messages: which Kafka release added or removed a version or a field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_msgs import drafts, messages
from kafka_msgs.errors import SchemaError
from kafka_msgs.message_history import VersionSpan, message_history
from kafka_msgs.schema_compiler import compile_schema
from kafka_msgs.versions import VersionRange
from kafka_msgs_generator import cli, comparison_commands
from kafka_msgs_generator.diff_output import render_diff
from kafka_msgs_generator.history import (
    History,
    first_releases,
    history_lines,
    history_text,
    later_fields,
    read_history,
    record,
    version_spans,
)
from kafka_msgs_generator.release_diff import ImportedDefinitions, diff_imports, read_import
from tests.oracle.build import OracleUnavailableError
from tests.oracle.older_releases import definitions_of
from tests.support.skip_reasons import not_run
from tests.support.small_definitions import compiled, data

ROOT = Path(__file__).parents[2]
SIZE = '{"name": "Size", "type": "int32", "versions": "0+"}'
PARTS = (
    '{"name": "Parts", "type": "[]Part", "versions": "1+", "fields": ['
    '{"name": "Name", "type": "string", "versions": "1+"}]}'
)


def release(*definitions: str) -> ImportedDefinitions:
    found = [compiled(text) for text in definitions]
    return ImportedDefinitions("", {message.name: message for message in found}, {})


def recorded(**releases: ImportedDefinitions) -> History:
    history = History()
    for name, imported in releases.items():
        record(history, name.removeprefix("r").replace("_", "."), imported)
    return history


@pytest.fixture
def history() -> History:
    return recorded(
        r2_2_0=release(data(SIZE, valid="0")),
        r2_10_0=release(data(f"{SIZE}, {PARTS}", valid="0-2")),
        r2_10_1=release(data(PARTS, valid="1-3")),
        r4_0_0=release(),
    )


def test_spans_are_from_the_first_release_to_the_first_one_without(history: History) -> None:
    assert version_spans(history, "Sample") == {"0": "2.2-2.10.1", "1-2": "2.10-4.0", "3": "2.10.1-4.0"}
    assert later_fields(history, "Sample") == {
        "size": "2.2-2.10.1",
        "parts": "2.10-4.0",
        "parts.name": "2.10-4.0",
    }
    assert first_releases(history) == {"Sample": "2.2"}


def test_the_history_is_written_for_people(history: History) -> None:
    assert list(history_lines(history, "Sample")) == [
        "Sample",
        "  version 0: since 2.2, removed in 2.10.1",
        "  versions 1-2: since 2.10, removed in 4.0",
        "  version 3: since 2.10.1, removed in 4.0",
        "  size: since 2.2, removed in 2.10.1",
        "  parts, parts.name: since 2.10, removed in 4.0",
    ]


def test_a_file_is_read_back_and_extended(history: History, tmp_path: Path) -> None:
    (tmp_path / "history.json").write_text(history_text(history), encoding="utf-8")
    read = read_history(tmp_path)
    assert read == history
    record(read, "4.1.0", release(data(SIZE, valid="3")))
    assert version_spans(read, "Sample") == {"0": "2.2-2.10.1", "1-2": "2.10-4.0", "3": "2.10.1"}
    assert read_history(tmp_path / "nowhere") == History()


@pytest.mark.parametrize("older", ["2.2.0", "4.0.0", "3.9.1"])
def test_a_release_that_is_not_newer_is_refused(history: History, older: str) -> None:
    with pytest.raises(SchemaError, match=r"is not newer than 4\.0\.0; record releases from old to new"):
        record(history, older, release())


def test_the_committed_history_ends_with_the_committed_definitions() -> None:
    history, current = read_history(ROOT / "message_defs"), read_import(ROOT / "message_defs")
    assert history.releases[0] == "2.2.0"
    assert history.releases[-1] == current.release
    present = {name: {v for v, span in spans.items() if "-" not in span} for name, spans in history.versions.items()}
    expected = {name: {str(version) for version in message.versions} for name, message in current.messages.items()}
    assert {name: versions for name, versions in present.items() if versions} == expected


@pytest.mark.parametrize("older", ["2.8.2", "3.9.1"])
@pytest.mark.oracle
def test_the_committed_history_has_the_versions_of_an_older_release(older: str) -> None:
    try:
        imported = read_import(definitions_of(older))
    except OracleUnavailableError as reason:
        not_run(str(reason))
    history = read_history(ROOT / "message_defs")
    for name, message in imported.messages.items():
        assert {version for version in message.versions if _has(history.versions[name][str(version)], older)} == set(
            message.versions
        )


def _has(span: str, release: str) -> bool:
    since, _, removed = span.partition("-")
    return _order(since) <= _order(release) and (not removed or _order(release) < _order(removed))


def _order(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def test_classes_of_the_release_have_a_history() -> None:
    found = message_history(messages.OffsetFetchRequest)
    assert found is not None
    assert found.since == "2.2"
    assert found.versions[:3] == (
        VersionSpan(VersionRange(1, 5), "2.2", None),
        VersionSpan(VersionRange(0, 0), "2.2", "4.0"),
        VersionSpan(VersionRange(6, 6), "2.4", None),
    )
    assert found.fields["groups"] == "3.0"
    assert "group_id" not in found.fields


def test_drafts_and_own_definitions_have_none() -> None:
    from kafka_msgs.drafts import kip_88

    assert "kip_88" in drafts.DRAFTS
    assert message_history(kip_88.OffsetFetchRequest) is None
    own = '{"name": "OffsetFetchRequest", "type": "data", "validVersions": "0", "flexibleVersions": "none"}'
    assert message_history(compile_schema(own)) is None


def test_a_page_of_changes_has_the_first_release_of_messages_that_are_gone(history: History) -> None:
    page = render_diff(diff_imports(release(data(SIZE)), release()), "markdown", first_releases(history))
    assert "| message | kind | key | versions | since Kafka |" in page
    assert "| Sample | data |  | 0-9 | 2.2 |" in page


def test_the_command_shows_a_message_and_records_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison_commands, "imported_release", lambda name: release(data(SIZE, valid="0-1")))
    arguments = ["history", "Sample", "--definitions", str(tmp_path), "--record", "2.2.0", "--record", "2.3.0"]
    shown = CliRunner().invoke(cli.command, arguments)
    assert (shown.exit_code, shown.stdout) == (0, "Sample\n  versions 0-1: since 2.2\n")
    assert read_history(tmp_path).releases == ["2.2.0", "2.3.0"]
    unknown = CliRunner().invoke(cli.command, ["history", "Nothing", "--definitions", str(tmp_path)])
    assert (unknown.exit_code, unknown.stderr) == (1, "Error: the history has no message 'Nothing'\n")


def test_a_short_name_shows_the_request_and_the_response() -> None:
    shown = CliRunner().invoke(cli.command, ["history", "Heartbeat", "--definitions", str(ROOT / "message_defs")])
    names = [line for line in shown.stdout.splitlines() if not line.startswith(" ")]
    assert names == ["HeartbeatRequest", "HeartbeatResponse"]


def test_the_command_prints_every_version_and_field_as_json() -> None:
    arguments = ["history", "OffsetFetchRequest", "--json", "--definitions", str(ROOT / "message_defs")]
    shown = json.loads(CliRunner().invoke(cli.command, arguments).stdout)["OffsetFetchRequest"]
    assert shown["versions"]["0"] == {"since": "2.2", "removed": "4.0"}
    assert shown["fields"]["groups"] == {"since": "3.0", "removed": None}
    assert shown["fields"]["group_id"]["since"] == "2.2"
