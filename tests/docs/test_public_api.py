"""The page of public names is generated, and covers every module that a page imports."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from tests.support.docs_tools import load_tool
from tests.support.markdown_pages import ROOT

IMPORTED = re.compile(r"^(?:>>> |\.\.\. )? *(?:from|import) (kafka_msgs[\w.]*)", re.MULTILINE)


@pytest.fixture(scope="module")
def public_api() -> ModuleType:
    return load_tool("public_api")


def test_the_page_is_up_to_date(public_api: ModuleType) -> None:
    assert public_api.main(["--check"]) == 0


def imported_modules() -> set[str]:
    """Return the modules of the library that README and pages import from."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return {name for page in pages for name in IMPORTED.findall(page.read_text())}


def test_pages_import_public_modules_only(public_api: ModuleType) -> None:
    private = imported_modules() - set(public_api.MODULES)
    assert {name for name in private if not name.startswith(("kafka_msgs.messages", "kafka_msgs.drafts"))} == set()
