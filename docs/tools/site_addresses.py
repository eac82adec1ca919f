"""The addresses and the descriptions of the site: an MkDocs hook.

``[project.urls]`` in ``pyproject.toml`` is the only home of the project's addresses. ``Source``, a GitHub repository,
adds links to edit a page and links to files outside ``docs/``; ``Documentation`` adds canonical addresses. Without
them the site has relative links only. Each page has a description for search engines and link previews: the
``description`` of its front matter, or its first paragraph.
"""

from __future__ import annotations

import os
import posixpath
import re
import tomllib
from collections.abc import Mapping
from html import escape, unescape
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.pages import Page

__all__ = ["on_config", "on_page_content", "on_page_markdown", "on_post_page", "project_urls"]

BRANCH: Final = "main"
DOCS: Final = "docs"
LONGEST_DESCRIPTION: Final = 200
"""Characters; search engines cut longer descriptions."""

_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)#:]+)((?:#[^)]*)?)\)")
_FIRST_PARAGRAPH: Final = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]+>")
_SENTENCE_END: Final = re.compile(r"(?<=[.:!?])\s+(?=[A-Z`])")
_MIKE_VERSION: Final = "MIKE_DOCS_VERSION"
"""Mike sets this variable while it builds the site of a version."""


def project_urls(config: MkDocsConfig) -> Mapping[str, str]:
    """Return the addresses in ``[project.urls]`` of the project that contains the configuration file."""
    settings = Path(config.config_file_path).with_name("pyproject.toml").read_text(encoding="utf-8")
    urls: dict[str, str] = tomllib.loads(settings)["project"].get("urls", {})
    return urls


@event_priority(100)  # Mike appends the version to the address of the site.
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the addresses of the site and of its repository, and hide the version menu if there are no versions."""
    urls = project_urls(config)
    if documentation := urls.get("Documentation"):
        config.site_url = documentation.rstrip("/") + "/"
    if source := urls.get("Source"):
        config.repo_url, config.edit_uri = source.rstrip("/"), f"edit/{BRANCH}/{DOCS}/"
        config.repo_name = "/".join(config.repo_url.split("/")[-2:])
        config.theme["features"].append("content.action.edit")
    if _MIKE_VERSION not in os.environ:
        config.extra.pop("version", None)
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Point links to files outside ``docs/`` to the repository, or keep only their text if its address is unknown."""
    here = posixpath.dirname(f"{DOCS}/{page.file.src_uri}")

    def resolved(link: re.Match[str]) -> str:
        path = posixpath.normpath(f"{here}/{link[2]}")
        if path.startswith(f"{DOCS}/"):
            return link[0]
        return f"[{link[1]}]({config.repo_url}/blob/{BRANCH}/{path}{link[3]})" if config.repo_url else link[1]

    return _LINK.sub(resolved, markdown)


def on_page_content(html: str, page: Page, **_: object) -> None:
    """Set the description of a page, escaped for an attribute."""
    page.meta["description"] = escape(page.meta.get("description") or _first_sentences(html))


def _first_sentences(html: str) -> str:
    """Return the sentences at the start of the first paragraph that fit into a description."""
    paragraph = _FIRST_PARAGRAPH.search(html)
    text = " ".join(unescape(_TAG.sub("", paragraph[1])).split()) if paragraph is not None else ""
    first, *others = _SENTENCE_END.split(text)
    for sentence in others:
        if len(first) + len(sentence) >= LONGEST_DESCRIPTION:
            break
        first = f"{first} {sentence}"
    return first


def on_post_page(output: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Add the tags of link previews. The theme must not request facts about the repository from another server."""
    tags = {
        "og:type": "website",
        "og:site_name": config.site_name,
        "og:title": escape(str(page.title)),
        "og:description": page.meta["description"],
        "og:url": page.canonical_url,
    }
    head = "".join(f'<meta property="{name}" content="{value}">' for name, value in tags.items() if value)
    return _without_facts(output).replace("</head>", f"{head}</head>", 1)


def _without_facts(output: str) -> str:
    return output.replace(' data-md-component="source"', "")
