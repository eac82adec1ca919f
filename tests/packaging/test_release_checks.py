"""The checks of a release: addresses of the owner, install commands of pages, and lists that exist twice."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.packaging.check_owner import NEEDED, missing
from tests.packaging.requirements import Requirement, page_requirements

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_a_release_needs_every_address() -> None:
    urls = dict.fromkeys(NEEDED, "https://example.org/")
    assert missing({"urls": urls}) == []
    assert missing({}) == [*NEEDED]
    assert missing({"urls": urls | {"Issues": "example.org"}}) == ["Issues"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`pip install kafka-msgs`", [Requirement("kafka-msgs")]),
        ("$ pip install -q 'kafka-msgs[a,b]' other\n", [Requirement("kafka-msgs", ("a", "b")), Requirement("other")]),
        ("pip install 'kafka-msgs>=0.1' && x", [Requirement("kafka-msgs", (), ">=0.1")]),
        ("`pip install other`", []),
    ],
)
def test_install_commands_of_a_page(text: str, found: list[Requirement], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert page_requirements([page]) == ({tuple(found)} if found else set())


def test_pages_install_extras_that_exist() -> None:
    named = {
        extra
        for command in page_requirements()
        for each in command
        for extra in each.extras
        if each.name == "kafka-msgs"
    }
    assert named <= set(SETTINGS["project"]["optional-dependencies"])


def test_no_extra_is_for_developers() -> None:
    """Tools of developers are in dependency groups, which are not published."""
    extras = " ".join(each for group in SETTINGS["project"]["optional-dependencies"].values() for each in group)
    assert not re.search(r"pytest|mypy|ruff|mkdocs|twine|uv\b", extras)


def test_workflows_use_the_tools_of_the_dependency_groups() -> None:
    """Workflows run tools by pipx, with the same versions as the dry run."""
    pinned = dict(
        each.partition(";")[0].split("==") for each in SETTINGS["dependency-groups"]["release"] if "==" in each
    )
    text = "".join(path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml"))
    used = re.findall(r"(?:pipx run(?: --spec)?) ([\w-]+)==([\w.]+)", text)
    assert {name for name, _ in used} >= {"build", "twine", "uv", "cyclonedx-bom"}
    assert [(name, version) for name, version in used if pinned.get(name, version) != version] == []
