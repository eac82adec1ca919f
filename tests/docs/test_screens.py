"""The pictures of the README show real output."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from tests.support.docs_tools import load_tool


@pytest.fixture(scope="module")
def screens() -> ModuleType:
    """The script that draws the pictures."""
    return load_tool("screens")


def test_the_annotated_bytes_are_up_to_date(screens: ModuleType) -> None:
    assert screens.main(["--check"]) == 0
    picture = screens.annotated_bytes()
    boxes = re.findall(r">([0-9a-f]{2})</text>", picture)
    assert "".join(boxes) == screens.RESPONSE


def test_the_session_is_what_the_commands_print(screens: ModuleType) -> None:
    drawn = (screens.IMAGES / "session.svg").read_text(encoding="utf-8")
    assert drawn == screens.terminal_session()


def test_no_picture_loads_anything(screens: ModuleType) -> None:
    for path in screens.IMAGES.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert "url(http" not in text, path
        assert "href" not in text, path
