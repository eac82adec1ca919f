"""The compatibility of revisions: a table made by hand, Kafka's own checker, and every pair of consecutive releases."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

import pytest

from kafka_msgs_generator.definition_sets import DefinitionSet, read_definition_set
from kafka_msgs_generator.evolution import check_evolution
from kafka_msgs_generator.evolution_output import render_changes
from kafka_msgs_generator.evolution_rules import EVOLUTION_DEVIATIONS, EVOLUTION_RULES
from kafka_msgs_generator.field_evolution import SchemaChange
from tests.generator.evolution_pairs import PAIRS, Pair, definition
from tests.oracle.build import OracleUnavailableError
from tests.oracle.older_releases import RELEASES, definitions_of
from tests.support.maven import JavaProject
from tests.support.skip_reasons import not_run


def written(folder: Path, *definitions: dict[str, Any]) -> DefinitionSet:
    folder.mkdir(parents=True)
    for each in definitions:
        (folder / f"{each['name']}.json").write_text(json.dumps(each, indent=1), encoding="utf-8")
    return read_definition_set(str(folder))


def short(change: SchemaChange) -> str:
    """Return a change in the notation of the table."""
    parts = change.rule, change.path or "-", change.versions.replace(" ", "") or "-"
    return " ".join([*parts, *([] if change.compatible else ["!"])])


def test_the_table_is_large_and_covers_every_rule() -> None:
    assert len(PAIRS) >= 60
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)
    used = {change.split()[0] for pair in PAIRS for change in pair.changes}
    assert EVOLUTION_RULES.keys() - used == {"E26"}
    assert EVOLUTION_DEVIATIONS.keys() <= EVOLUTION_RULES.keys()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_pair_of_revisions_has_the_listed_changes(pair: Pair, tmp_path: Path) -> None:
    old, new = written(tmp_path / "old", pair.old), written(tmp_path / "new", pair.new)
    assert [short(change) for change in check_evolution(old, new)] == list(pair.changes)


@pytest.fixture(scope="module")
def checker() -> list[str]:
    """The command that runs Kafka's checker."""
    try:
        return JavaProject(Path(__file__).with_name("evolution_checker"), "EvolutionChecker").command()
    except OracleUnavailableError as reason:
        not_run(str(reason))


def verdicts(command: Sequence[str], paths: Iterable[tuple[Path, Path]]) -> list[str]:
    """Return the verdict of Kafka's checker on each pair of files."""
    lines = "".join(f"{old}\t{new}\n" for old, new in paths)
    return subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.oracle
def test_kafkas_checker_has_the_same_verdict_on_the_table_or_a_listed_one(checker: list[str], tmp_path: Path) -> None:
    paths = []
    for number, pair in enumerate(PAIRS):
        folders = tmp_path / f"{number}-old", tmp_path / f"{number}-new"
        sets = [written(folder, each) for folder, each in zip(folders, (pair.old, pair.new), strict=True)]
        old, new = (Path(next(iter(each.definitions.values())).file) for each in sets)
        paths.append((old, new))
    for pair, verdict in zip(PAIRS, verdicts(checker, paths), strict=True):
        if pair.kafka is None:
            assert (verdict == "ok") == pair.compatible, (pair.name, verdict)
        else:
            assert pair.kafka in verdict, (pair.name, verdict)
            assert (verdict == "ok") != pair.compatible, (pair.name, verdict)


_EXPLAINED: Final[Mapping[str, Sequence[str]]] = {
    # Reasons of the checker, with the rules that explain a different verdict here; "" needs no change at all.
    r"ok": ("E4", "E13", "E17", "E19", "E21"),
    r"Unable to locate a specification for the structure": ("",),  # it cannot find structs without fields
    r"but the message versions are only": ("",),  # E8, broken before as well
    r"should be present in message1, but is not": ("E12", "E25"),
    r"Field type for field2": ("E12", "E25"),
    r"Default for field2": ("",),  # E18, in another notation
    r"nullable version": ("E19",),
    r"effective valid version": ("E14", "E25"),
    r"must not be higher than final": ("E25",),
}


def _explains(verdict: str, changes: Sequence[SchemaChange]) -> bool:
    rules = {change.rule for change in changes}
    return any(
        re.search(pattern, verdict) and (rules & {*expected} or "" in expected)
        for pattern, expected in _EXPLAINED.items()
    )


@pytest.mark.oracle
def test_kafkas_checker_has_the_same_verdict_on_all_releases_or_an_explained_one(
    checker: list[str], tmp_path: Path
) -> None:
    """Compares every message of every two consecutive releases since 2.2."""
    cases = []
    for release, (old, new) in enumerate(pairwise(_releases())):
        changes: dict[str, list[SchemaChange]] = {}
        for change in check_evolution(old, new):
            changes.setdefault(change.message, []).append(change)
        for name in old.definitions.keys() & new.definitions.keys():
            paths = [_readable(each, name, tmp_path / f"{release}-{at}") for at, each in enumerate((old, new))]
            cases.append(((paths[0], paths[1]), name, changes.get(name, [])))
    found = verdicts(checker, [paths for paths, _, _ in cases])
    unexplained = [
        (name, verdict, [short(change) for change in changes])
        for (_, name, changes), verdict in zip(cases, found, strict=True)
        if (verdict == "ok") != all(change.compatible for change in changes) and not _explains(verdict, changes)
    ]
    assert not unexplained
    assert len(found) > 3000
    assert sum(verdict == "ok" for verdict in found) > 3000


def _releases() -> Iterator[DefinitionSet]:
    try:
        yield from (read_definition_set(str(definitions_of(release))) for release in RELEASES)
    except OracleUnavailableError as reason:
        not_run(str(reason))


def _readable(revision: DefinitionSet, name: str, folder: Path) -> Path:
    """Copy a definition without the keys of other releases that Kafka's checker does not read."""
    made = json.loads(Path(revision.definitions[name].file).read_text(encoding="utf-8"))
    for key in ("listeners", "supportedErrors", "headerVersions"):
        made.pop(key, None)
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


# The command


@pytest.fixture
def two_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "old", definition("A int32 0+"), definition("A int8 0+", name="Gone"))
    written(tmp_path / "new", definition("A int64 0+", "B int8 2+", valid="0-2"), definition(name="Added"))
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as users do, in a process."""
    command = str(Path(sys.executable).with_name("kafka-msgs-generator"))
    return subprocess.run([command, "evolve", *arguments], capture_output=True, text=True, check=False)


def test_the_command_lists_the_changes_and_fails_for_incompatible_ones(two_revisions: Path) -> None:
    done = run("old", "new")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "new/Added.json:1: compatible (E26): Added: new message with versions 0-1",
        "INCOMPATIBLE (E5): Gone: no version remains",
        "new/Sample.json:1: compatible (E7): Sample: versions changed; before [0-1], now [0-2]",
        "new/Sample.json:7: INCOMPATIBLE (E16): Sample a: type changed, in 0-1; before [int32, 0+], now [int64, 0+]",
        "new/Sample.json:12: compatible (E11): Sample b: new field in new versions; now [int8, 2+]",
        "old -> new: 5 changes, 2 incompatible",
    ]
    assert run("old/Sample.json", "old/Sample.json").returncode == 0


def test_a_renamed_request_is_recognized_by_its_api_key(tmp_path: Path) -> None:
    facts: dict[str, Any] = {"type": "request", "apiKey": 7, "valid": "0"}
    other = definition(name="OtherRequest", type="request", apiKey=8)
    old = written(tmp_path / "old", definition("A int32 0+", name="FirstRequest", **facts), other)
    new = written(tmp_path / "new", definition("A int32 0+", name="SecondRequest", **facts), other)
    assert [short(change) for change in check_evolution(old, new)] == ["E3 - - !"]


def test_annotations_for_github_are_escaped(two_revisions: Path) -> None:
    done = run("old", "new", "--format", "github", "--breaking")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "::error title=Gone E5::INCOMPATIBLE (E5): Gone: no version remains",
        "::error file=new/Sample.json,line=7,title=Sample E16::INCOMPATIBLE (E16): Sample a: type changed, in 0-1; "
        "before [int32, 0+], now [int64, 0+]",
    ]
    change = SchemaChange(message="M", rule="E3", compatible=False, reason="100%\nof it", file="a,b:c.json", line=1)
    assert render_changes([change], "github", "", "") == (
        "::error file=a%2Cb%3Ac.json,line=1,title=M E3::INCOMPATIBLE (E3): M: 100%25%0Aof it\n"
    )


def test_json_has_the_rules(two_revisions: Path) -> None:
    done = run("old", "new", "--format", "json", "--out", "changes.json")
    assert (done.returncode, done.stdout) == (1, "")
    shown = json.loads((two_revisions / "changes.json").read_text(encoding="utf-8"))
    assert (shown["old"], shown["new"], shown["compatible"]) == ("old", "new", False)
    assert shown["changes"][3]["requires"] == EVOLUTION_RULES["E16"]
    assert shown["changes"][3]["line"] == 7


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nowhere", "new"], 1, "nowhere is neither a path nor a release such as 4.3.1"),
        (["old", "empty"], 1, "no definitions (*.json) here"),
        (["old", "broken"], 1, "broken/Sample.json"),
        (["old", "Sample.jar"], 1, "Sample.jar"),
        (["old"], 2, "Missing argument 'NEW'"),
        (["old", "new", "--format", "xml"], 2, "'xml' is not one of"),
    ],
)
def test_bad_input_is_reported(two_revisions: Path, arguments: list[str], status: int, message: str) -> None:
    (two_revisions / "empty").mkdir()
    (two_revisions / "broken").mkdir()
    (two_revisions / "broken" / "Sample.json").write_text('{"name": 1')
    (two_revisions / "Sample.jar").write_text("not a jar")
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_definitions_in_a_jar_have_no_file_for_annotations(two_revisions: Path) -> None:
    with ZipFile(two_revisions / "kafka-clients-9.9.jar", "w") as jar:
        jar.write(two_revisions / "new" / "Sample.json", "common/message/Sample.json")
    done = run("old/Sample.json", "kafka-clients-9.9.jar", "--format", "github", "--breaking")
    assert (done.returncode, done.stdout.startswith("::error title=Sample E16::INCOMPATIBLE")) == (1, True)


def test_definitions_with_all_versions_and_many_structs_are_compared_quickly(tmp_path: Path) -> None:
    def chain(leaf: str) -> dict[str, Any]:
        common = [(f"S{n}", "0+", f"A S{n + 1} 0+", f"B S{n + 1} 0+") for n in range(40)]
        return definition("Top S0 0+", valid="0-32766", common=[*common, ("S40", "0+", f"Leaf {leaf} 0+")])

    old, new = written(tmp_path / "old", chain("int32")), written(tmp_path / "new", chain("int64"))
    assert [short(change) for change in check_evolution(old, new)] == ["E16 S40.leaf 0-32766 !"]
