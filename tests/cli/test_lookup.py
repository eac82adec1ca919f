"""Looking up messages, fields, plans and error codes."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable

import pytest

from kafka_msgs import ErrorCode, iter_message_classes
from kafka_msgs.cli.message_names import draft_names, find_messages
from kafka_msgs.cli.render.documentation import class_documentation, field_documentation
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.support.command_line import Run, squeezed


def listed(run: Run, *arguments: str) -> list[dict[str, object]]:
    result = run("messages", "--output", "json", *arguments)
    assert result.exit_code == 0
    rows: list[dict[str, object]] = json.loads(result.stdout)
    return rows


def test_list_has_every_message_of_the_release(run: Run) -> None:
    assert [row["name"] for row in listed(run)] == [cls.INFO.name for cls in iter_message_classes()]


def test_list_has_every_message_of_the_drafts_under_its_drafts_name(run: Run) -> None:
    names = [row["name"] for row in listed(run, "--drafts")]
    assert names == draft_names()
    assert {"kip_1071.StreamsGroupHeartbeatRequest", "kip_88.OffsetFetchRequest"} < set(names)


def test_list_describes_a_message(run: Run) -> None:
    assert listed(run, "OffsetFetchRequest") == [
        {
            "name": "OffsetFetchRequest",
            "origin": "clients",
            "kind": "request",
            "apiKey": 9,
            "versions": "1-10",
            "flexible": "6-10",
            "deprecated": None,
        }
    ]


def test_list_filters_by_text_kind_and_origin(run: Run) -> None:
    names = {row["name"] for row in listed(run, "offsetcommit", "--kind", "coordinator-value")}
    assert names == {"LegacyOffsetCommitValue", "OffsetCommitValue"}
    origins = {row["origin"] for row in listed(run, "--origin", "metadata")}
    assert origins == {"metadata"}
    assert {row["origin"] for row in listed(run, "--origin", "kip_1071")} == {"kip_1071"}


def test_list_prints_a_table_that_pipes_do_not_cut(run: Run) -> None:
    lines = squeezed(run("messages", "StreamsGroupTargetAssignmentMemberKey").stdout)
    assert lines[0] == "1 message"
    assert "StreamsGroupTargetAssignmentMemberKey group-coordinator coordinator-key 21 0" in lines


def test_show_lists_fields_with_versions_and_meaning(run: Run) -> None:
    shown = run("show", "OffsetFetchRequest").stdout
    assert "OffsetFetchRequest: request, api key 9, versions 1-10, flexible in versions 6-10, sent to broker" in shown
    assert "topics: []OffsetFetchRequestTopic, versions 1-7, nullable in versions 2-7, default ()" in shown
    assert "member_epoch: int32, versions 9-10, default -1, ignorable" in shown
    assert field_documentation(OffsetFetchRequestGroup)["member_epoch"] in shown


def test_show_at_a_version_leaves_out_what_it_lacks(run: Run) -> None:
    shown = run("show", "OffsetFetchRequest", "2").stdout
    assert "version 2, not flexible" in shown
    assert "topics: []OffsetFetchRequestTopic, nullable, default ()" in shown
    assert "require_stable" not in shown
    assert "groups:" not in shown


def test_show_names_tags(run: Run) -> None:
    shown = run("show", "ApiVersionsResponse").stdout
    assert "finalized_features_epoch: int64, versions 3-5, tag 1, default -1, ignorable" in shown
    assert "finalized_features_epoch: int64, tag 1" in run("show", "ApiVersionsResponse", "3").stdout
    assert "finalized_features_epoch" not in run("show", "ApiVersionsResponse", "2").stdout


def test_show_lists_the_errors_that_a_version_may_return(run: Run) -> None:
    lines = squeezed(run("show", "OffsetFetchResponse", "10").stdout)
    assert "16 NOT_COORDINATOR yes 10" in lines
    assert "100 UNKNOWN_TOPIC_ID yes 10" in lines
    assert not [line for line in squeezed(run("show", "OffsetFetchResponse", "2").stdout) if "TOPIC_ID" in line]


def test_show_marks_drafts(run: Run) -> None:
    assert ", a draft: " in run("show", "kip_1071.StreamsGroupHeartbeatRequest").stdout


@pytest.mark.parametrize("text", ["OffsetFetch", "offsetfetch", "offset-fetch", "OFFSET_FETCH", "9"])
def test_show_of_a_short_name_shows_the_request_and_the_response(run: Run, text: str) -> None:
    shown = run("show", text).stdout
    assert "OffsetFetchRequest: request, api key 9" in shown
    assert "OffsetFetchResponse: response, api key 9" in shown
    assert shown.count("api key") == 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("OffsetCommit", ["OffsetCommitRequest", "OffsetCommitResponse"]),
        ("groupmetadata", ["GroupMetadataKey", "GroupMetadataValue"]),
        ("offset-commit-value", ["OffsetCommitValue"]),
        ("Topic", ["TopicRecord"]),
        ("kip_88.offsetfetch", ["OffsetFetchRequest", "OffsetFetchResponse"]),
        ("18", ["ApiVersionsRequest", "ApiVersionsResponse"]),
    ],
)
def test_short_names_in_any_case(text: str, names: list[str]) -> None:
    assert [cls.INFO.name for cls in find_messages(text)] == names


def test_a_command_for_one_message_asks_which_of_two_is_meant(run: Run) -> None:
    result = run("plan", "offsetfetch", "8")
    assert result.exit_code == 2
    assert "'offsetfetch' may be two messages: OffsetFetchRequest or OffsetFetchResponse" in result.stderr


def test_show_as_json(run: Run) -> None:
    request, response = json.loads(run("show", "9", "--json").stdout)
    assert (request["name"], request["apiKey"], request["versions"]) == ("OffsetFetchRequest", 9, "1-10")
    groups = next(field for field in request["fields"] if field["name"] == "Groups")
    assert groups["versions"] == "8-10"
    epoch = next(field for field in groups["fields"] if field["attribute"] == "member_epoch")
    assert (epoch["type"], epoch["versions"], epoch["default"], epoch["ignorable"]) == ("int32", "9-10", "-1", True)
    assert {"code": 16, "name": "NOT_COORDINATOR", "retriable": True, "versions": "1-10"} in response["errors"]


def test_show_as_json_at_one_version(run: Run) -> None:
    (request,) = json.loads(run("show", "OffsetFetchRequest", "2", "--json").stdout)
    assert [field["name"] for field in request["fields"]] == ["GroupId", "Topics"]
    assert request["flexible"] is None


def test_list_and_errors_as_json_lines(run: Run) -> None:
    rows = [json.loads(line) for line in run("messages", "OffsetFetch", "--output", "jsonl").stdout.splitlines()]
    assert [row["name"] for row in rows] == ["OffsetFetchRequest", "OffsetFetchResponse"]
    assert json.loads(run("errors", "not-coordinator", "--json").stdout) == [
        {"code": 16, "name": "NOT_COORDINATOR", "retriable": True}
    ]


def test_list_as_csv_has_a_line_of_names_and_empty_fields(run: Run) -> None:
    lines = list(csv.reader(run("messages", "OffsetCommitKey", "--output", "csv").stdout.splitlines()))
    assert lines == [
        ["name", "origin", "kind", "apiKey", "versions", "flexible", "deprecated"],
        ["LegacyOffsetCommitKey", "group-coordinator", "coordinator-key", "0", "0", "", ""],
        ["OffsetCommitKey", "group-coordinator", "coordinator-key", "1", "0", "", ""],
    ]


@pytest.mark.parametrize(("option", "known"), [("--kind", "coordinator-value"), ("--origin", "group-coordinator")])
def test_list_refuses_an_unknown_kind_and_names_those_that_exist(run: Run, option: str, known: str) -> None:
    result = run("messages", option, "nonsense")
    assert result.exit_code == 2
    assert "'nonsense' is not one of" in result.stderr
    assert known in result.stderr


def test_show_refuses_a_version_that_the_message_lacks(fails: Callable[..., str]) -> None:
    assert fails("show", "OffsetFetchRequest", "20") == "OffsetFetchRequest has no version 20; it has 1-10"


def test_documentation_is_found_for_the_class_and_for_each_documented_field() -> None:
    assert class_documentation(OffsetFetchRequest).startswith("Asks a group's coordinator")
    assert list(field_documentation(OffsetFetchRequest)) == ["group_id", "topics", "groups", "require_stable"]


def test_plan_prints_the_plan(run: Run) -> None:
    assert run("plan", "OffsetFetchRequest", "8").stdout == f"{compile_plan(OffsetFetchRequest, 8)}\n"


def test_plan_as_json(run: Run) -> None:
    plan = json.loads(run("plan", "OffsetFetchRequest", "8", "--json").stdout)
    assert (plan["name"], plan["version"], plan["flexible"]) == ("OffsetFetchRequest", 8, True)
    groups, stable = plan["fields"]
    assert [field["attribute"] for field in groups["fields"]] == ["group_id", "topics"]
    assert (stable["attribute"], stable["type"], stable["tag"], stable["fields"]) == (
        "require_stable",
        "bool",
        None,
        [],
    )


def test_plan_source_is_python_for_both_directions(run: Run) -> None:
    source = run("plan", "OffsetFetchRequest", "8", "--source").stdout
    compile(source, "generated", "exec")
    assert re.findall(r"^def (\w+)\(", source, re.M) == ["decode", "encode"]


@pytest.mark.parametrize(
    ("wanted", "row"),
    [
        ("27", "27 REBALANCE_IN_PROGRESS no"),
        ("-1", "-1 UNKNOWN_SERVER_ERROR no"),
        ("not_coordinator", "16 NOT_COORDINATOR yes"),
    ],
)
def test_errors_finds_a_code_or_a_name(run: Run, wanted: str, row: str) -> None:
    assert row in squeezed(run("errors", wanted).stdout)


def test_errors_lists_every_code(run: Run) -> None:
    rows = [line.split(" ")[1] for line in squeezed(run("errors").stdout) if re.match(r"-?\d+ ", line)]
    assert rows == [code.name for code in ErrorCode]


def test_errors_refuses_an_unknown_code(fails: Callable[..., str]) -> None:
    assert fails("errors", "999") == "this release has no error 999"


def test_a_misspelt_message_is_a_wrong_call_and_similar_names_are_offered(run: Run) -> None:
    result = run("plan", "offsetfetchreqest", "8")
    assert result.exit_code == 2
    assert "there is no message 'offsetfetchreqest'; similar: OffsetFetchRequest, kip_88" in result.stderr


def test_a_draft_is_found_by_its_drafts_name_only() -> None:
    assert [cls.INFO.draft is None for cls in find_messages("kip_1071.StreamsGroupHeartbeatRequest")] == [False]
    assert [cls.INFO.draft is None for cls in find_messages("StreamsGroupHeartbeatRequest")] == [True]
    with pytest.raises(LookupError, match="there is no message"):
        find_messages("kip_88.StreamsGroupHeartbeatRequest")
