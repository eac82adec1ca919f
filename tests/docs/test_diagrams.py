"""The diagrams match the code, are the same for every reader, and load nothing."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from tests.support.docs_tools import load_tool
from tests.support.markdown_pages import ROOT, blocks, pages


@pytest.fixture(scope="module")
def diagrams() -> ModuleType:
    """The script that draws the diagrams."""
    return load_tool("diagrams")


def test_the_pictures_are_up_to_date(diagrams: ModuleType) -> None:
    assert diagrams.main(["--check"]) == 0


def test_the_pictures_load_nothing_and_have_a_dark_scheme(diagrams: ModuleType) -> None:
    for path, text in diagrams.pictures():
        assert "href" not in text, path
        assert "prefers-color-scheme:dark" in text, path
        assert re.search(r"<title>.+</title>", text), path


def test_no_page_needs_a_script_to_draw_a_diagram() -> None:
    assert [page for page in pages() for block in blocks(page) if block.language == "mermaid"] == []


def test_the_overview_describes_every_package(diagrams: ModuleType) -> None:
    """Each package of the import contract is in the table, and the table contains no former name."""
    text = (ROOT / "docs/design/overview.md").read_text(encoding="utf-8")
    section = text.partition("## Packages")[2].partition("\n## ")[0]
    described = {
        name for row in re.findall(r"^\| (`[^|]+)\|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert described == {name for layer in diagrams.layers() for name in layer}
