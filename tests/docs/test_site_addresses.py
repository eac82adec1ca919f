"""One value switches addresses on: links to the repository, canonical addresses, and versions of the site."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import pytest

from tests.support.docs_tools import load_tool
from tests.support.markdown_pages import ROOT
from tests.support.skip_reasons import not_run

pytest.importorskip("mkdocs")

HOOK: Final = "docs/tools/site_addresses.py"
SOURCE: Final = "https://github.com/tea/kafka-msgs"
URLS: Final = f'[project.urls]\nSource = "{SOURCE}"\nDocumentation = "https://tea.example/docs"\n'
PAGES: Final = {
    "index.md": '# Tea\n\nThis page is *about* "tea" & scones. It links to [a page](how-to/page.md).\n\nMore text.\n',
    "how-to/page.md": "---\ndescription: Written by hand.\n---\n\n# Page\n\nSee [the licence](../../LICENSE).\n",
}


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """The MkDocs hook that adds addresses."""
    return load_tool("site_addresses")


@pytest.mark.parametrize("repository", [None, SOURCE])
@pytest.mark.parametrize(
    ("page", "text", "path"),
    [
        ("index.md", "[a](../README.md) [b](tutorial/x.md)", "README.md"),
        ("reference/y.md", "[a](../../CONTRIBUTING.md#c) [b](../index.md#top)", "CONTRIBUTING.md#c"),
        ("reference/y.md", "[b](#here) [b](https://example.org/)", ""),
    ],
)
def test_links_out_of_the_documentation_lead_to_the_repository(
    hook: ModuleType, repository: str | None, page: str, text: str, path: str
) -> None:
    where: Any = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    address = f"[a]({SOURCE}/blob/main/{path})" if repository else "a"
    expected = re.sub(r"\[a\]\([^)]*\)", address, text)
    assert hook.on_page_markdown(text, where, SimpleNamespace(repo_url=repository)) == expected


def _project(to: Path, urls: str) -> Path:
    """Write a project with two pages and the site's own settings, without its menu and other hooks."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[0]
    hooks = re.sub(r"^  - docs/tools/(?!site_addresses).*\n", "", settings, flags=re.MULTILINE)
    for name, text in {
        "mkdocs.yml": hooks,
        "pyproject.toml": f'[project]\nname = "kafka-msgs"\n{urls}',
        HOOK: (ROOT / HOOK).read_text(encoding="utf-8"),
        "docs/assets/site.css": "",
        "docs/assets/site.js": "",
        **{f"docs/{name}": text for name, text in PAGES.items()},
    }.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text(text, encoding="utf-8")
    return to


def _run(project: Path, *command: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"PATH": path}
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def _site(project: Path) -> Path:
    _run(project, "mkdocs", "build", "--quiet", "--strict")
    return project / "build/site"


def _links(page: Path) -> list[str]:
    return re.findall(r'(?:href|src|content)="(https?://[^"]+)"', page.read_text(encoding="utf-8"))


def test_without_addresses_pages_have_descriptions_and_relative_links(tmp_path: Path) -> None:
    site = _site(_project(tmp_path, ""))
    index, page = ((site / name).read_text(encoding="utf-8") for name in ("index.html", "how-to/page.html"))
    description = "This page is about &quot;tea&quot; &amp; scones. It links to a page."
    assert f'<meta name="description" content="{description}">' in index
    assert f'<meta property="og:description" content="{description}">' in index
    assert '<meta property="og:title" content="Page">' in page
    assert '<meta name="description" content="Written by hand.">' in page
    assert "See the licence." in page
    assert "mike" not in index
    assert [link for link in _links(site / "index.html") if "squidfunk" not in link] == []


def test_addresses_add_edit_links_and_canonical_addresses(tmp_path: Path) -> None:
    site = _site(_project(tmp_path, URLS))
    page = site / "how-to/page.html"
    canonical = "https://tea.example/docs/how-to/page.html"
    text = page.read_text(encoding="utf-8")
    assert f'<link rel="canonical" href="{canonical}">' in text
    assert f'<meta property="og:url" content="{canonical}">' in text
    assert {f"{SOURCE}/edit/main/docs/how-to/page.md", f"{SOURCE}/blob/main/LICENSE", SOURCE} <= set(_links(page))
    assert 'data-md-component="source"' not in text, "the theme requests facts about the repository from GitHub"


def test_mike_deploys_versions(tmp_path: Path) -> None:
    """Versions stand next to each other on a branch; each has the menu of versions and a canonical address."""
    if shutil.which("git") is None:
        not_run("git not found")
    project = _project(tmp_path / "project", URLS)
    remote = tmp_path / "remote.git"
    _run(tmp_path, "git", "init", "--quiet", "--bare", str(remote))
    _run(project, "git", "init", "--quiet", "--initial-branch=main")
    for setting in ("user.name=tea", "user.email=tea@example.org", f"remote.origin.url={remote}"):
        _run(project, "git", "config", *setting.split("="))
    _run(project, "git", "add", ".")
    _run(project, "git", "commit", "--quiet", "--message", "Add")
    for arguments in (("0.1",), ("--update-aliases", "0.2", "latest")):
        _run(project, "mike", "deploy", "--push", *arguments)
    _run(project, "mike", "set-default", "--push", "latest")
    _run(tmp_path, "git", "clone", "--quiet", "--branch", "gh-pages", str(remote), "published")
    published = tmp_path / "published"
    versions = json.loads((published / "versions.json").read_text(encoding="utf-8"))
    assert [(version["version"], version["aliases"]) for version in versions] == [("0.2", ["latest"]), ("0.1", [])]
    page = (published / "0.1/how-to/page.html").read_text(encoding="utf-8")
    assert '"provider": "mike"' in page
    assert '<link rel="canonical" href="https://tea.example/docs/latest/how-to/page.html">' in page
    assert "latest" in (published / "index.html").read_text(encoding="utf-8")
