"""The differences between two imports, and the committed page, which must be up to date."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator.cli import command
from kafka_msgs_generator.diff_output import render_diff
from kafka_msgs_generator.history import first_releases, read_history
from kafka_msgs_generator.importer import import_release
from kafka_msgs_generator.release_diff import diff_imports, read_import
from tests.support.releases import release_of

ROOT = Path(__file__).resolve().parents[2]


def made(folder: Path, release: str, *definitions: dict[str, Any], errors: dict[str, int] | None = None) -> Path:
    """Write the import of these definitions."""
    (folder / "kafka" / "clients").mkdir(parents=True)
    (folder / "SOURCE.toml").write_text(f'release = "{release}"\n', encoding="utf-8")
    table = [{"name": name, "code": code, "retriable": False} for name, code in (errors or {}).items()]
    (folder / "errors.json").write_text(json.dumps(table), encoding="utf-8")
    for definition in definitions:
        path = folder / "kafka" / "clients" / f"{definition['name']}.json"
        path.write_text(json.dumps(definition), encoding="utf-8")
    return folder


def message(name: str, versions: str, *fields: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """Return a definition of type data."""
    return {
        "name": name,
        "type": "data",
        "validVersions": versions,
        "flexibleVersions": "1+",
        "fields": fields,
        **facts,
    }


def a_field(name: str, kind: str, versions: str, **facts: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions, **facts}


SIZE = a_field("Size", "int32", "0+")
ITEMS = a_field("Items", "[]Item", "0+", fields=[a_field("Key", "string", "0+")])


def markdown(old: Path, new: Path) -> str:
    return render_diff(diff_imports(read_import(old), read_import(new)), "markdown")


def compared(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the page's lines about one message."""
    page = markdown(made(tmp_path / "1", "1", old), made(tmp_path / "2", "2", new))
    return [line for line in page.split("## Changed messages\n")[-1].splitlines() if line][1:]


def test_equal_meanings_are_not_reported_as_changes(tmp_path: Path) -> None:
    same = made(tmp_path / "a", "1.0", message("A", "0-1", SIZE), errors={"NONE": 0})
    page = markdown(same, same)
    assert page.startswith("# From Kafka 1.0 to 1.0\n")
    assert "##" not in page.replace("# From", "")


def test_messages_and_errors_that_come_and_go_are_listed(tmp_path: Path) -> None:
    old = made(tmp_path / "old", "1", message("A", "0-1"), message("B", "0"), errors={"NONE": 0, "LOST": 3})
    retired = message("B", "none")
    new = made(
        tmp_path / "new", "2", message("C", "0", apiKey=7), message("A", "0-1"), retired, errors={"NONE": 0, "NEW": 4}
    )
    page = markdown(old, new)
    head = "| message | kind | key | versions |\n| --- | --- | --- | --- |\n"
    assert f"## New messages\n\n{head}| C | data | 7 | 0 |\n" in page
    assert f"## Messages that are gone\n\n{head}| B | data |  | 0 |\n" in page
    assert "| LOST | 3 | not there |\n| NEW | not there | 4 |\n" in page
    assert "Changed" not in page


def test_a_new_version_is_shown_with_its_fields(tmp_path: Path) -> None:
    new = message(
        "A", "0-1", SIZE, a_field("Note", "string", "1+", nullableVersions="1+", default="null", ignorable=True)
    )
    assert compared(tmp_path, message("A", "0", SIZE), new) == [
        "| fact | before | now |",
        "| --- | --- | --- |",
        "| versions | 0 | 0-1 |",
        "| `note` | not there | string, 1+, null 1+, default null, ignorable |",
        "At version 0 the bytes are laid out as before.",
    ]


def test_a_field_that_only_changed_its_name_is_called_so(tmp_path: Path) -> None:
    new = message("A", "0-1", a_field("Length", "int32", "0+"))
    lines = compared(tmp_path, message("A", "0-1", SIZE), new)
    assert lines[2:] == [
        "| `size` | int32, 0+ | called length |",
        "At versions 0-1 the bytes are laid out as before.",
    ]


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        (message("A", "0-1", a_field("Size", "int64", "0+"), ITEMS), "at 0, 1."),
        (message("A", "0-1", SIZE, a_field("More", "int8", "1+"), ITEMS), "at 1."),
        (message("A", "0-1", ITEMS, SIZE), "at 0, 1."),
        (message("A", "0-1", SIZE, {**ITEMS, "fields": [a_field("Key", "bytes", "0+")]}), "at 0, 1."),
        (message("A", "0-1", SIZE, {**ITEMS, "nullableVersions": "1+"}), "at 1."),
        (message("A", "0-1", SIZE, ITEMS, flexibleVersions="none"), "at 1."),
    ],
)  # fmt: skip
def test_other_bytes_at_a_version_that_was_there_are_not_compatible(
    tmp_path: Path, new: dict[str, Any], verdict: str
) -> None:
    lines = compared(tmp_path, message("A", "0-1", SIZE, ITEMS), new)
    assert lines[-1] == f"**Not compatible**: the bytes are laid out in another way {verdict}"


def test_a_new_tagged_field_leaves_the_rest_as_it_was_and_another_meaning_of_a_tag_does_not(tmp_path: Path) -> None:
    tagged = a_field("Tag", "int32", "1+", tag=0, taggedVersions="1+")
    old, new = message("A", "0-1", SIZE), message("A", "0-1", SIZE, tagged)
    last = "At versions 0-1 the bytes are laid out as before, but for tagged fields that came or went."
    assert compared(tmp_path / "1", old, new)[-1] == last
    other = message("A", "0-1", SIZE, {**tagged, "type": "int64"})
    assert compared(tmp_path / "2", new, other)[-1].startswith("**Not compatible**")


def test_structs_that_each_use_the_next_twice_are_compared_once_each(tmp_path: Path) -> None:
    def chain(leaf: str) -> dict[str, Any]:
        structs = [
            {
                "name": f"S{n}",
                "versions": "0+",
                "fields": [a_field("A", f"S{n + 1}", "0+"), a_field("B", f"S{n + 1}", "0+")],
            }
            for n in range(40)
        ]
        structs.append({"name": "S40", "versions": "0+", "fields": [a_field("Leaf", leaf, "0+")]})
        return message("A", "0-1", a_field("Top", "S0", "0+"), commonStructs=structs)

    lines = compared(tmp_path, chain("int32"), chain("int64"))
    assert lines[-1] == "**Not compatible**: the bytes are laid out in another way at 0, 1."


def test_the_command_prints_the_page_or_writes_it(tmp_path: Path) -> None:
    old = made(tmp_path / "old", "1", message("A", "0"))
    new = made(tmp_path / "new", "2", message("A", "0-1"))
    printed = CliRunner().invoke(command, ["diff", str(old), str(new), "--format", "markdown"])
    assert (printed.exit_code, printed.stdout[:23]) == (0, "# From Kafka 1 to 2\n\nCh")
    written = CliRunner().invoke(
        command, ["diff", str(old), str(new), "--format", "markdown", "--out", str(tmp_path / "page.md")]
    )
    assert (written.exit_code, written.stdout) == (0, "")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == printed.stdout


@pytest.fixture
def two_imports(tmp_path: Path) -> tuple[Path, Path]:
    old = made(tmp_path / "old", "1", message("A", "0-1", SIZE), message("B", "0"), errors={"LOST": 3})
    changed = message("A", "0-2", a_field("Size", "int64", "0+"), a_field("Note", "string", "2+"))
    return old, made(tmp_path / "new", "2", changed, message("C", "0", apiKey=7), errors={"NEW": 3})


def test_the_differences_as_text(two_imports: tuple[Path, Path]) -> None:
    shown = CliRunner().invoke(command, ["diff", *map(str, two_imports)])
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "Kafka 1 -> 2",
        "+ C (data 7), versions 0",
        "- B (data), versions 0",
        "~ A: Not compatible: the bytes are laid out in another way at 0, 1.",
        "    versions: 0-1 -> 0-2",
        "    size: int32, 0+ -> int64, 0+",
        "    note: not there -> string, 2+",
        "~ error LOST: 3 -> not there",
        "~ error NEW: not there -> 3",
    ]


def test_the_differences_as_json(two_imports: tuple[Path, Path]) -> None:
    shown = json.loads(CliRunner().invoke(command, ["diff", *map(str, two_imports), "--format", "json"]).stdout)
    assert [each["name"] for each in shown["added"]] == ["C"]
    assert shown["removed"][0]["since"] is None
    assert shown["changed"][0]["changedLayouts"] == [0, 1]
    assert shown["changed"][0]["changes"][-1] == {"fact": "note", "before": None, "now": "string, 2+"}
    assert shown["errors"][0] == {"name": "LOST", "before": 3, "now": None}


def test_the_differences_as_a_page_that_loads_nothing(two_imports: tuple[Path, Path]) -> None:
    page = CliRunner().invoke(command, ["diff", *map(str, two_imports), "--format", "html"]).stdout
    assert "<title>From Kafka 1 to 2</title>" in page
    assert "<td>int64, 0+</td>" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "Metrics" not in page


def test_what_is_not_an_import_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"not a directory that the import wrote: it has no SOURCE\.toml"):
        read_import(tmp_path)


def newest_page() -> str:
    return (ROOT / "docs" / "reference" / f"changes-{release_of('clients')}.md").read_text(encoding="utf-8")


def test_the_page_of_the_release_ends_at_the_release() -> None:
    assert re.match(rf"# From Kafka [0-9.]+ to {re.escape(release_of('clients'))}\n", newest_page())


@pytest.mark.oracle
def test_the_page_of_the_release_is_what_the_command_writes(tmp_path: Path) -> None:
    """Fetches the previous release through Maven."""
    page = newest_page()
    before = page.split()[3]
    import_release(before, tmp_path)
    old, new = read_import(tmp_path), read_import(ROOT / "message_defs")
    assert render_diff(diff_imports(old, new), "markdown", first_releases(read_history(ROOT / "message_defs"))) == page


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["diff", "nowhere", "new"], 1, "'nowhere' is not a release"),
        (["diff", "new", "new"], 1, "not a directory that the import wrote"),
        (["diff", "broken.jar", "new"], 1, "broken.jar"),
        (["diff", "new"], 2, "Missing argument 'NEW'"),
        (["diff", "new", "new", "--format", "pdf"], 2, "'pdf' is not one of"),
        (["history", "Nothing", "--definitions", "new"], 1, "the history has no message 'Nothing'"),
        (["history", "A", "--definitions", "nowhere"], 2, "'nowhere' does not exist"),
    ],
)
def test_bad_input_is_refused(tmp_path: Path, arguments: list[str], status: int, message: str) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "broken.jar").write_text("not a jar")
    program = str(Path(sys.executable).with_name("kafka-msgs-generator"))
    done = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
