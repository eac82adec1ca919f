"""The state machine diagrams match the code."""

from __future__ import annotations

from importlib import util

from tests.support.markdown_pages import ROOT


def test_the_pictures_are_up_to_date() -> None:
    spec = util.spec_from_file_location("state_machines", ROOT / "docs" / "tools" / "state_machines.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert module.main(["--check"]) == 0
