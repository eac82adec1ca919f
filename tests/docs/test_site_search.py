"""The search index is small enough to be built in the browser within a second."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.support.docs_tools import load_tool

pytest.importorskip("mkdocs")


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """The MkDocs hook that shortens the index."""
    return load_tool("site_search")


@pytest.mark.parametrize(
    ("location", "title", "text", "expected"),
    [
        ("api/x.html#x.Y", "Y <code>class</code>", "<pre>Y()</pre><p>One.</p> <p>Two.</p>", ("Y", "<p>One.</p>")),
        ("api/x.html#x.Z", "Z <code>module-attribute</code>", "<pre>Z = 1</pre>", ("Z", "")),
        ("how-to/lag.html#a", "Lag", "<p>One.</p><pre>$ lag</pre><p>Two.</p>", ("Lag", "<p>One.</p><p>Two.</p>")),
        ("reference/cli-cluster.html#lag", "lag", "<pre>--group</pre>", ("lag", "<pre>--group</pre>")),
    ],
)
def test_sections_keep_the_text_that_readers_search(
    hook: ModuleType, location: str, title: str, text: str, expected: tuple[str, str]
) -> None:
    found = hook.shortened({"location": location, "title": title, "text": text, "boost": 4})
    assert (found["title"], found["text"], found["boost"]) == (*expected, 4)


def test_a_large_index_is_a_warning(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "search" / "search_index.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"config": {}, "docs": [{"location": "a.html", "title": "A", "text": "<p>a</p>"}]}))
    with caplog.at_level(logging.WARNING):
        hook.on_post_build(SimpleNamespace(site_dir=str(tmp_path)))
        assert caplog.records == []
        monkeypatch.setattr(hook, "MOST_BYTES", 10)
        hook.on_post_build(SimpleNamespace(site_dir=str(tmp_path)))
    assert "more than 10" in caplog.text
