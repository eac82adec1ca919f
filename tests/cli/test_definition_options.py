"""``--definitions``: commands use the user's own messages, compiled when the command runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Run

ORDER = """{
  "apiKey": 9, "type": "request", "name": "OrderRequest", "listeners": ["broker"],
  "validVersions": "0-1", "flexibleVersions": "none", "about": "Orders tea.",
  "fields": [
    { "name": "Cups", "type": "int16", "versions": "0+", "about": "How many cups." },
    { "name": "Milk", "type": "bool", "versions": "1+", "about": "Whether with milk." }
  ]
}
"""
RETIRED = '{ "type": "data", "name": "Gone", "validVersions": "none", "flexibleVersions": "none", "fields": [] }'


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "OrderRequest.json").write_text(ORDER)
    (tmp_path / "Gone.json").write_text(RETIRED)
    return tmp_path


def test_show_explains_the_own_message_and_its_versions(run: Run, definitions: Path) -> None:
    for name in ("OrderRequest", "order", "9"):
        shown = run("show", name, "--definitions", str(definitions)).stdout
        assert "OrderRequest: request, api key 9, versions 0-1" in shown
        assert "milk: bool, version 1, default False" in shown
        assert "OffsetFetch" not in shown


def test_a_single_file_and_any_order_of_arguments(run: Run, definitions: Path) -> None:
    file = str(definitions / "deeper" / "OrderRequest.json")
    assert run("encode", "--definitions", file, "Order", "0", '{"cups": 3}').stdout == "0003\n"
    assert run("encode", "Order", "1", '{"cups": 3, "milk": true}', "--definitions", file).stdout == "000301\n"


def test_decode_explain_and_plan(run: Run, definitions: Path) -> None:
    option = ("--definitions", str(definitions))
    assert json.loads(run("decode", "Order", "1", "000301", "--json", *option).stdout) == {"cups": 3, "milk": True}
    assert "OrderRequest v1" in run("plan", "Order", "1", *option).stdout
    explained = run("decode", "Order", "1", "--explain", "0003", *option)
    assert explained.exit_code == 1
    assert "milk at byte 2: bool needs 1 bytes, 0 left" in explained.stderr


def test_messages_of_the_release_stay_known(run: Run, definitions: Path) -> None:
    result = run("plan", "HeartbeatRequest", "4", "--definitions", str(definitions))
    assert result.stdout.startswith("HeartbeatRequest v4")


def test_a_definition_that_does_not_compile_is_named_with_its_place(
    fails: Callable[..., str], definitions: Path
) -> None:
    (definitions / "Bad.json").write_text(ORDER.replace("int16", "int17"))
    assert "Bad.json:5:" in fails("show", "Order", "--definitions", str(definitions))


def test_a_retired_message_alone_is_refused(fails: Callable[..., str], definitions: Path) -> None:
    assert "retired" in fails("show", "Gone", "--definitions", str(definitions / "Gone.json"))


def test_a_directory_without_definitions_is_refused(run: Run, tmp_path: Path) -> None:
    result = run("show", "Order", "--definitions", str(tmp_path))
    assert (result.exit_code, result.stderr) == (1, f"Error: {tmp_path}: no definitions (*.json) here\n")
    assert run("show", "Order", "--definitions", str(tmp_path / "absent")).exit_code == 2


def test_a_frame_is_read_with_the_own_definitions(run: Run, definitions: Path) -> None:
    """The definition uses the API key 9, which belongs to OffsetFetch."""
    request = "0009 0001 00000007 ffff 0003 01"
    option = ("--definitions", str(definitions))
    shown = run("frame", request, *option).stdout
    assert "OrderRequest v1" in shown
    assert "cups: 3" in shown
    assert "OrderRequest v1" in run("frame", request, "--explain", *option).stdout
    assert run("frame", request).exit_code == 1


def test_a_version_that_the_own_definitions_lack_is_read_with_the_release(run: Run, definitions: Path) -> None:
    request = "0009 0002 00000007 ffff 000162 ffffffff"
    assert "OffsetFetchRequest v2" in run("frame", request, "--definitions", str(definitions)).stdout


ANSWER = """# the answer
{
  "apiKey": TBD, "type": “response”, "name": "OrderResponse", "validVersions": "0-1", "flexibleVersions": "none",
  "fields": [{ "name": "Cups", "type": "int16", "versions": "0+" },]
}
"""
PAGE = ORDER.replace('"apiKey": 9', '"apiKey": TBD') + ANSWER


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Write two definitions into one file, as on a wiki page."""
    path = tmp_path / "Order.json"
    path.write_text(PAGE)
    return path


@pytest.mark.parametrize("whole", [True, False], ids=["a file", "a directory"])
def test_definitions_of_a_page_are_read_with_the_value_of_a_word(run: Run, page: Path, whole: bool) -> None:
    (page.parent / "Gone.json").write_text(RETIRED)
    option = ("--lenient", "--bind", "TBD=77", "--definitions", str(page if whole else page.parent))
    for name in ("Order", "77"):
        shown = run("show", name, *option).stdout
        assert "OrderRequest: request, api key 77, versions 0-1" in shown
        assert "OrderResponse: response, api key 77, versions 0-1" in shown
    assert run("encode", *option, "OrderResponse", "0", '{"cups": 3}').stdout == "0003\n"


def test_a_page_needs_a_lenient_reading_and_a_value(fails: Callable[..., str], page: Path) -> None:
    assert "TBD is not JSON" in fails("show", "Order", "--definitions", str(page))
    assert "TBD is not bound to a value" in fails("show", "Order", "--definitions", str(page), "--lenient")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("--lenient",), "--lenient needs --definitions"),
        (("--bind", "TBD=77", "--definitions", "."), "--bind needs --lenient"),
        (("--lenient", "--bind", "TBD", "--definitions", "."), "'TBD' is not WORD=VALUE"),
        (("--lenient", "--bind", "=77", "--definitions", "."), "'' is not WORD=VALUE"),
    ],
)
def test_options_that_do_not_fit_together_are_a_wrong_call(run: Run, given: tuple[str, ...], reason: str) -> None:
    result = run("show", "OffsetFetch", *given)
    assert (result.exit_code, reason in result.stderr) == (2, True)
