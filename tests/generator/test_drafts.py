"""The drafts: each description agrees with the draft's definitions and with the released definitions."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

DEFINITIONS = Path("message_defs")
DRAFTS = sorted(path for path in (DEFINITIONS / "drafts").iterdir() if path.is_dir())
# Attributes that affect neither the wire nor a default.
_ASIDE = ("entityType", "ignorable")


def read(path: Path) -> dict[str, Any]:
    """Read one definition."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def about(draft: Path) -> dict[str, Any]:
    """Read a draft's description."""
    return tomllib.loads((draft / "draft.toml").read_text(encoding="utf-8"))


def released(name: str) -> dict[str, Any] | None:
    """Return the released definition with a name, or None."""
    return next((read(path) for path in (DEFINITIONS / "kafka").glob(f"*/{name}.json")), None)


def layout(definition: dict[str, Any] | None) -> Any:
    """Return names, types, defaults and order of all fields and used structs; without versions if there is only one."""
    if definition is None:
        return None
    structs = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", ())}

    def shape(fields: list[dict[str, Any]]) -> list[Any]:
        return [
            (
                {key: value for key, value in field.items() if key not in (*_ASIDE, "fields", "versions")},
                field.get("versions") if definition["flexibleVersions"] != "none" else None,
                shape(field.get("fields", structs.get(field["type"].removeprefix("[]"), []))),
            )
            for field in fields
        ]

    return shape(definition["fields"])


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda path: path.name)
def test_a_draft_says_what_it_is(draft: Path) -> None:
    facts = about(draft)
    assert {"title", "status", "source", "summary", "bindings", "differs"} == set(facts)
    assert all(facts[key] for key in ("title", "status", "source", "summary"))


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda path: path.name)
def test_a_draft_names_exactly_the_messages_that_differ_from_the_release(draft: Path) -> None:
    definitions = {path.stem: read(path) for path in draft.glob("*.json")}
    differing = {name for name, item in definitions.items() if layout(item) != layout(released(name))}
    assert set(about(draft)["differs"]) == differing


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda path: path.name)
def test_bindings_are_what_the_definitions_hold(draft: Path) -> None:
    for binding, value in about(draft)["bindings"].items():
        name, *path = binding.split(".")
        item: Any = read(draft / f"{name}.json")
        for key in path[:-1]:
            item = next(field for field in item["fields"] if field["name"].lower() == key.lower())
        assert item[path[-1]] == (str(value) if path[-1] == "validVersions" else value)


def test_all_blocks_of_kip_1071_are_there() -> None:
    names = {path.stem for path in (DEFINITIONS / "drafts/kip_1071").glob("*.json")}
    records = {"Metadata", "PartitionMetadata", "MemberMetadata", "TargetAssignmentMetadata"}
    records |= {"TargetAssignmentMember", "CurrentMemberAssignment", "Topology"}
    calls = {f"StreamsGroup{call}{side}" for call in ("Heartbeat", "Describe") for side in ("Request", "Response")}
    assert names == calls | {f"StreamsGroup{record}{part}" for record in records for part in ("Key", "Value")}


def test_record_keys_of_kip_1071_are_distinguished_by_version() -> None:
    keys = [read(path) for path in (DEFINITIONS / "drafts/kip_1071").glob("*Key.json")]
    assert sorted(int(key["validVersions"]) for key in keys) == list(range(17, 24))
    assert all(field["versions"] == key["validVersions"] for key in keys for field in key["fields"])


def test_the_drafted_heartbeat_has_no_endpoint_epoch_and_the_released_one_does() -> None:
    draft = [
        field["name"] for field in read(DEFINITIONS / "drafts/kip_1071/StreamsGroupHeartbeatRequest.json")["fields"]
    ]
    shipped = released("StreamsGroupHeartbeatRequest")
    assert shipped is not None
    assert [field["name"] for field in shipped["fields"] if field["name"] not in draft] == ["EndpointInformationEpoch"]
    assert len(draft) == 16
