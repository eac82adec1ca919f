"""The API reference: an MkDocs hook that adds one page per public module, generated from its docstrings.

``message_pages`` adds the pages of the release's messages; this module only checks their docstrings.

This module defines which names are public: the names in ``__all__``, in each public module of the package. A package
with an ``__all__`` is one page; a package without one is a page per module. Message modules have no ``__all__`` and
show all their classes. mkdocstrings reads the docstrings without importing modules. A public name that is missing from
the site, or that has no docstring, is a warning, and a warning fails a strict build.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocstrings import Inventory

__all__ = ["on_files", "on_page_markdown", "on_post_build"]

PACKAGE: Final = "kafka_msgs"
COMMAND_LINE: Final = frozenset({"cli", "__main__"})
"""Not an API: documented by ``kafka-msgs --help``."""

GENERATED: Final = ("messages", "drafts")
"""Packages of message modules."""

NOT_IN_SEARCH: Final = "---\nsearch:\n  exclude: true\n---\n\n"
"""The front matter of drafts: the search finds the messages of the release, on their own pages."""

FORMS: Final = frozenset({f"{PACKAGE}.admin", f"{PACKAGE}.client"})
"""Packages with blocking and asyncio classes, which inherit all of their methods."""

_FENCE = re.compile(r"^(```\w+) .*$", re.MULTILINE)
_LOG = logging.getLogger(f"mkdocs.hooks.{__name__}")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference. The index links to them; the menu contains only the index."""
    modules, drafts = list(_modules()), list(_message_modules("drafts"))
    for name in (*modules, *drafts):
        content = f"{_front_matter(name)}{_text(name)}"
        files.append(File.generated(config, _page(name), content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    files.append(File.generated(config, "api/index.md", content=_index(modules, drafts)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Remove the test options of code blocks."""
    return _FENCE.sub(r"\1", markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Warn about public names that are missing from the inventory of the site, and about names without a docstring."""
    with (Path(config.site_dir) / "objects.inv").open("rb") as file:
        shown = Inventory.parse_sphinx(file)
    for name in _public_names():
        if name not in shown and not name.startswith(f"{PACKAGE}.messages."):
            _LOG.warning("%s is public and not in the reference", name)
        elif not _has_docstring(name):
            _LOG.warning("%s is public and has no docstring", name)


def _public_names() -> Iterator[str]:
    for name in (*_modules(), *_message_modules(*GENERATED)):
        yield name
        yield from (f"{name}.{member}" for member in _members(name))


def _has_docstring(name: str) -> bool:
    found = _package()[name.removeprefix(f"{PACKAGE}.")] if name != PACKAGE else _package()
    return found.has_docstring


def _modules() -> Iterator[str]:
    yield PACKAGE
    for child in sorted(_package().modules.values(), key=lambda module: module.name):
        if child.name.startswith("_") or child.name in COMMAND_LINE or child.name in GENERATED:
            continue
        if child.exports is not None:
            yield child.path
        else:
            yield from (part.path for part in child.modules.values() if _is_public(part))


def _message_modules(*packages: str) -> Iterator[str]:
    for name in packages:
        yield from (module.path for module in _leaves_of(_package()[name]) if not module.name.startswith("_"))


def _leaves_of(module: griffe.Module) -> Iterator[griffe.Module]:
    for child in module.modules.values():
        yield from _leaves_of(child) if child.modules else (child,)


def _is_public(module: griffe.Module) -> bool:
    return not module.name.startswith("_") and module.exports is not None


def _members(name: str) -> list[str]:
    module = _package()[name.removeprefix(f"{PACKAGE}.")] if name != PACKAGE else _package()
    if module.exports is not None:
        elsewhere = _messages() if name == PACKAGE else set()
        return sorted({str(export) for export in module.exports} - elsewhere)
    return [member.name for member in module.classes.values() if not member.is_alias]


@cache
def _messages() -> set[str]:
    """Return the names of all messages: the package exports them, and their own modules document them."""
    return {str(export) for export in _package()["messages"].exports}


@cache
def _package() -> griffe.Module:
    root = Path(__file__).resolve().parents[2]
    loaded = griffe.load(PACKAGE, search_paths=[root])
    assert isinstance(loaded, griffe.Module)
    return loaded


def _page(name: str) -> str:
    return f"api/{name}.md"


def _front_matter(name: str) -> str:
    return NOT_IN_SEARCH if name.startswith(f"{PACKAGE}.drafts.") else ""


def _text(name: str) -> str:
    members = "".join(f"\n        - {member}" for member in _members(name))
    inherited = "      inherited_members: true\n" if name in FORMS else ""
    return f"::: {name}\n    options:\n{inherited}      members:{members}\n"


def _index(modules: list[str], drafts: list[str]) -> str:
    """Return the list of the pages: stable modules first, internal ones and drafts collapsed."""
    lines = [
        "# API",
        "",
        "Public names, module by module. A name that is not listed here is internal and may change.",
        "",
    ]
    lines += [f"- [`{name}`]({name}.md)" for name in modules if name.count(".") < 2]
    lines += ["", "Every message of the release has [a page](../messages/index.md).", ""]
    lines += _collapsed("Submodules", [name for name in modules if name.count(".") >= 2])
    lines += _collapsed("Drafts", drafts)
    return "\n".join(lines)


def _collapsed(title: str, names: list[str]) -> list[str]:
    return [f'??? note "{title}"', "", *(f"    - [`{name}`]({name}.md)" for name in names), ""]
