"""The site's configuration: a short menu, every page within three clicks, and nothing from other servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.markdown_pages import ROOT, links

yaml = pytest.importorskip("yaml")

DOCS: Final = ROOT / "docs"
_MENU_ENTRIES: Final = 60
_BUILT: Final = {"messages/index.md", "api/index.md"}


def _menu() -> list[Any]:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    menu: list[Any] = yaml.safe_load(text)["nav"]
    return menu


def _entries(menu: list[Any]) -> Iterator[Any]:
    """Yield the titles of sections and the paths of pages."""
    for entry in menu:
        for title, content in entry.items() if isinstance(entry, dict) else (("", entry),):
            if isinstance(content, list):
                yield title
                yield from _entries(content)
            else:
                yield content


def test_the_menu_is_short() -> None:
    assert len(list(_entries(_menu()))) <= _MENU_ENTRIES


def test_every_page_is_within_three_clicks() -> None:
    """The menu is one or two clicks away from each page, and a link on a page of the menu is one more."""
    menu = {entry for entry in _entries(_menu()) if entry.endswith(".md")}
    assert menu - _BUILT <= {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    near = set(menu)
    for entry in menu - _BUILT:
        page = DOCS / entry
        targets = ((page.parent / link.partition("#")[0]).resolve() for link in links(page) if "://" not in link)
        near |= {str(target.relative_to(DOCS)) for target in targets if target.is_relative_to(DOCS)}
    assert {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} <= near


def test_scripts_and_styles_are_our_own() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in text
    assert not re.search(r"https?://", text)
    for path in (DOCS / "assets").iterdir():
        assert not re.search(r"https?://|@import", path.read_text(encoding="utf-8")), path


def test_the_generator_of_the_site_is_pinned_below_its_next_major_version() -> None:
    assert '"mkdocs>=1.6,<2"' in Path(ROOT / "pyproject.toml").read_text(encoding="utf-8")
