"""A small index for the search of the site: an MkDocs hook.

The browser builds its index from the texts of all sections, on each page. API members keep their first paragraph, and
code blocks are omitted, except the help of commands: the rest of the index would cost more than a second of processor
time, and finds little that the remaining text does not find.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority

__all__ = ["MOST_BYTES", "on_post_build", "shortened"]

MOST_BYTES: Final = 1_450_000
"""A larger index is a warning, which fails a strict build."""

_API: Final = "api/"
_HELP: Final = "reference/cli-"
_PARAGRAPH: Final = re.compile(r"<p>.*?</p>", re.DOTALL)
_CODE_BLOCK: Final = re.compile(r"<pre>.*?</pre>", re.DOTALL)
_LABEL: Final = re.compile(r"\s*<code>[a-z-]+</code>$")
"""The label of an API member, such as ``module-attribute``."""

_LOG = logging.getLogger(f"mkdocs.hooks.{__name__}")


@event_priority(-100)  # after the search plugin has written the index
def on_post_build(config: MkDocsConfig) -> None:
    """Shorten the texts of the index."""
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    index["docs"] = [shortened(section) for section in index["docs"]]
    text = json.dumps(index, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")
    if len(text) > MOST_BYTES:
        _LOG.warning("the search index has %d bytes: more than %d", len(text), MOST_BYTES)


def shortened(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section of the index without text that the search does not need."""
    location, title, text = (section[name] for name in ("location", "title", "text"))
    if location.startswith(_API):
        first = _PARAGRAPH.search(text)
        text, title = first[0] if first is not None else "", _LABEL.sub("", title)
    elif not location.startswith(_HELP):
        text = _CODE_BLOCK.sub("", text)
    return {**section, "title": title, "text": text}
