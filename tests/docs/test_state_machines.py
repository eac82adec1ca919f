"""The state machine diagrams match the code."""

from __future__ import annotations

from tests.support.docs_tools import load_tool


def test_the_pictures_are_up_to_date() -> None:
    module = load_tool("state_machines")

    assert module.main(["--check"]) == 0
