"""The glossary: how entries are found, and that the committed glossary covers the promised share of fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.errors import SchemaError
from kafka_msgs.versions import VersionRange
from kafka_msgs_generator.glossary import (
    Glossary,
    MissingEntry,
    dangling_entries,
    gaps,
    load_glossary,
    number_of_fields,
)

DEFINITIONS = Path("message_defs")
DOCUMENTED_FIELDS = 0.95
"""The minimum share of fields, over all definitions, that the committed glossary documents."""

PLANETS = """
[PlanetsResponse]
message = "Says which planets there are."
planets = "Planets, by distance."
"planets.name" = "What the planet is called."
name = "What the star is called."

[PlanetsResponse.structs.Moon]
name = "What the moon is called."
"""
COMMON = """
[fields]
errorCode = "What went wrong."
name = "A name."

[structs.Orbit]
radius = "Distance, in km."
"""
DEFINITION: dict[str, Any] = {
    "name": "PlanetsResponse",
    "fields": [
        {"name": "Name", "type": "string"},
        {"name": "ErrorCode", "type": "int16"},
        {"name": "Planets", "type": "[]Planet", "fields": [
            {"name": "Name", "type": "string"},
            {"name": "Moons", "type": "[]Moon", "versions": "1+", "nullableVersions": "2+", "default": "null"},
            {"name": "Orbit", "type": "Orbit", "versions": "0+"},
        ]},
    ],
    "commonStructs": [
        {"name": "Moon", "fields": [
            {"name": "Name", "type": "string"}, {"name": "Mass", "type": "int32", "versions": "0+", "default": -1},
        ]},
        {"name": "Orbit", "fields": [{"name": "Radius", "type": "int64"}]},
    ],
}  # fmt: skip


@pytest.fixture
def planets(tmp_path: Path) -> Glossary:
    """A glossary with one message and common entries."""
    (tmp_path / "planets.toml").write_text(PLANETS, encoding="utf-8")
    (tmp_path / "common.toml").write_text(COMMON, encoding="utf-8")
    return load_glossary(tmp_path)


@pytest.fixture(scope="module")
def committed() -> Glossary:
    """The project's own glossary."""
    return load_glossary(DEFINITIONS / "glossary")


@pytest.fixture(scope="module")
def definitions() -> list[dict[str, Any]]:
    """Every committed definition, drafts included."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(DEFINITIONS.glob("*/*/*.json"))]


@pytest.mark.parametrize(
    ("path", "struct", "text"),
    [
        (("name",), "PlanetsResponse", "What the star is called."),
        (("planets", "name"), "Planet", "What the planet is called."),
        (("name",), "Moon", "What the moon is called."),
        (("name",), "Orbit", "A name."),
        (("radius",), "Orbit", "Distance, in km."),
        (("planets", "errorCode"), "Planet", "What went wrong."),
        (("mass",), "Moon", None),
        (("radius",), "PlanetsResponse", None),
    ],
)
def test_the_nearest_entry_is_found(planets: Glossary, path: tuple[str, ...], struct: str, text: str | None) -> None:
    assert planets.field("PlanetsResponse", path, struct) == text


def test_the_longest_end_of_a_path_is_found() -> None:
    common = {"name": "A name.", "moons.name": "A moon's name.", "planets.moons.name": "The name of a planet's moon."}
    glossary = Glossary(messages={}, structs={}, common_structs={}, common_fields=common)
    assert glossary.field("Sky", ("planets", "moons", "name"), "Moon") == "The name of a planet's moon."
    assert glossary.field("Sky", ("stars", "moons", "name"), "Moon") == "A moon's name."
    assert glossary.field("Sky", ("moons", "name"), "Moon") == "A moon's name."
    assert glossary.field("Sky", ("name",), "Sky") == "A name."
    assert dangling_entries(glossary, [DEFINITION]) == ["fields.moons.name", "fields.planets.moons.name"]


def test_sentences_on_later_versions_are_left_out() -> None:
    texts = {
        "message": "Asks for planets (KIP-7). From version 2 it asks for moons.",
        "planets": "Planets. In versions 0 to 3 without moons. Up to version 7, none of its own.",
        "stars": "Stars, from version 2.",
    }
    glossary = Glossary(messages={"Sky": texts}, structs={}, common_structs={}, common_fields={})
    draft = VersionRange.parse("0-1")
    assert glossary.message("Sky", draft) == "Asks for planets (KIP-7)."
    assert glossary.field("Sky", ("planets",), "Sky", draft) == "Planets."
    assert glossary.field("Sky", ("stars",), "Sky", draft) is None
    assert glossary.field("Sky", ("stars",), "Sky", VersionRange.parse("0-2")) == "Stars, from version 2."
    assert glossary.message("Sky") == texts["message"]


def test_drafts_say_nothing_of_later_versions(committed: Glossary) -> None:
    """The remaining text of an entry is not empty."""
    found = 0
    for path in sorted(DEFINITIONS.glob("drafts/*/*.json")):
        item = json.loads(path.read_text(encoding="utf-8"))
        versions = VersionRange.parse(item["validVersions"])
        texts = [committed.message(item["name"], versions)]
        texts += [committed.field(item["name"], (name,), item["name"], versions) for name in top_level_names(item)]
        assert None not in texts, path
        given = {int(last) for text in texts for last in re.findall(r"versions? (?:\d+ to )?(\d+)", text or "")}
        assert max(given, default=0) <= versions.highest, path
        found += len(texts)
    assert found > 100


def top_level_names(item: dict[str, Any]) -> list[str]:
    """Return the names of a message's fields, as spelled in the glossary."""
    return [field["name"][0].lower() + field["name"][1:] for field in item["fields"]]


def test_a_message_is_documented_or_not(planets: Glossary) -> None:
    assert planets.message("PlanetsResponse") == "Says which planets there are."
    assert planets.message("StarsResponse") is None


def test_gaps_are_reported_with_the_facts_of_the_definition(planets: Glossary) -> None:
    assert gaps(planets, DEFINITION) == [
        MissingEntry("PlanetsResponse", "planets.moons", "[]Moon, 1+, null 2+, default null"),
        MissingEntry("PlanetsResponse", "planets.orbit", "Orbit, 0+"),
        MissingEntry("PlanetsResponse", "structs.Moon.mass", "int32, 0+, default -1"),
    ]
    assert gaps(planets, {"name": "StarsResponse", "fields": []}) == [MissingEntry("StarsResponse", "message")]
    assert number_of_fields(DEFINITION) == 9


def test_entries_that_document_nothing_are_reported(planets: Glossary, tmp_path: Path) -> None:
    assert dangling_entries(planets, [DEFINITION]) == []
    more = '[PlanetsResponse]\n"planets.size" = "x"\n[PlanetsResponse.structs.Sun]\nname = "x"\n[Gone]\nmessage = "x"\n'
    (tmp_path / "more.toml").write_text(more, encoding="utf-8")
    assert dangling_entries(load_glossary(tmp_path), [DEFINITION]) == [
        "Gone.message",
        "PlanetsResponse.planets.size",
        "PlanetsResponse.structs.Sun.name",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[PlanetsResponse]\nname = "Again."\n', r"zebra\.toml: name: documented twice"),
        ("[PlanetsResponse]\nsize = 3\n", r"zebra\.toml: size: expected a string"),
        ("[PlanetsResponse\n", r"zebra\.toml: .*line 1"),
    ],
)
@pytest.mark.usefixtures("planets")
def test_a_bad_file_is_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "zebra.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError, match=reason):
        load_glossary(tmp_path)


def test_no_committed_entry_is_dangling(committed: Glossary, definitions: list[dict[str, Any]]) -> None:
    assert dangling_entries(committed, definitions) == []


def test_every_message_is_documented(committed: Glossary, definitions: list[dict[str, Any]]) -> None:
    assert [item["name"] for item in definitions if committed.message(item["name"]) is None] == []


def test_nearly_every_field_is_documented(committed: Glossary, definitions: list[dict[str, Any]]) -> None:
    lacking = [gap for item in definitions for gap in gaps(committed, item) if gap.key != "message"]
    fields = sum(map(number_of_fields, definitions))
    assert len(lacking) <= (1 - DOCUMENTED_FIELDS) * fields, lacking


def texts_of(glossary: Glossary) -> list[str]:
    """Yield every sentence of a glossary."""
    tables = [*glossary.messages.values(), *glossary.structs.values(), *glossary.common_structs.values()]
    return [text for table in (*tables, glossary.common_fields) for text in table.values()]


def test_entries_are_sentences(committed: Glossary) -> None:
    texts = texts_of(committed)
    assert [text for text in texts if not text.endswith(".") or text != text.strip() or "\n" in text] == []
    assert [text for text in texts if "null" in text.lower()] == []


def test_entries_name_errors_by_their_numbers(committed: Glossary) -> None:
    table = json.loads((DEFINITIONS / "errors.json").read_text(encoding="utf-8"))
    numbers = {error["name"]: error["code"] for error in table}
    named = [
        match for text in texts_of(committed) for match in re.findall(r"\b([A-Z]{2,}(?:_[A-Z]+)+) \((\d+)\)", text)
    ]
    assert len(named) > 10
    assert [(name, code) for name, code in named if numbers.get(name) != int(code)] == []


def documented(glossary: Glossary, item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the path, definition and glossary text of each field of a definition."""
    todo: list[tuple[str, tuple[str, ...], Any]] = [(item["name"], (), fields) for fields in (item.get("fields", ()),)]
    todo += [(struct["name"], (), struct["fields"]) for struct in item.get("commonStructs", ())]
    for struct, parents, fields in todo:
        for field in fields:
            path = (*parents, field["name"][0].lower() + field["name"][1:])
            yield f"{item['name']}: {'.'.join(path)}", field, glossary.field(item["name"], path, struct) or ""
            todo.append((field["type"].removeprefix("[]"), path, field.get("fields", ())))


def test_entries_agree_with_the_definitions(committed: Glossary) -> None:
    """Entries mention None only for nullable fields, -1 only for fields with that default, and units for times."""
    items = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(DEFINITIONS.glob("kafka/*/*.json"))]
    fields = [found for item in items for found in documented(committed, item)]
    assert len(fields) == sum(map(number_of_fields, items))
    nullable = [(name, field.get("nullableVersions", "none") != "none", text) for name, field, text in fields]
    assert [name for name, allowed, text in nullable if allowed != bool(re.search(r"\bNone\b", text))] == []
    minus_one = [(name, text) for name, field, text in fields if str(field.get("default")) == "-1"]
    assert [name for name, text in minus_one if "-1" not in text] == []
    times = [(name, text) for name, field, text in fields if field["name"].endswith(("Ms", "Timestamp"))]
    assert [name for name, text in times if "milliseconds" not in text.lower()] == []
    choices = [(name, text) for name, field, text in fields if field["type"] == "bool"]
    assert [name for name, text in choices if not text.startswith("True")] == []


def test_entries_give_versions_that_the_message_has(committed: Glossary, definitions: list[dict[str, Any]]) -> None:
    valid: dict[str, set[int]] = {}
    for item in definitions:
        versions = VersionRange.parse(item["validVersions"])
        valid.setdefault(item["name"], set()).update(range(versions.lowest, versions.highest + 1))
    for name, table in committed.messages.items():
        given = {int(n) for text in table.values() for n in re.findall(r"(?:from|up to|in) versions? (\d+)", text)}
        assert given <= valid[name], name
