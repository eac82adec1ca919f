"""The API reference documents every public name; its hook fails if one is missing."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from kafka_msgs.catalog import iter_message_classes
from tests.support.docs_tools import load_tool

pytest.importorskip("mkdocstrings")


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """The MkDocs hook that writes the reference pages."""
    return load_tool("api_reference")


def test_every_name_that_a_module_exports_is_on_its_page(hook: ModuleType) -> None:
    modules = list(hook._modules())
    assert {"kafka_msgs", "kafka_msgs.wire", "kafka_msgs.records", "kafka_msgs.errors"} <= set(modules)
    for name in modules:
        assert hook._members(name) == sorted(import_module(name).__all__), name


def test_every_message_must_have_a_docstring(hook: ModuleType) -> None:
    names = set(hook._public_names())
    assert {f"{found.__module__}.{found.__name__}" for found in iter_message_classes()} <= names


def test_a_name_that_the_site_lacks_is_a_warning(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    inventory = sys.modules["mkdocstrings"].Inventory()
    inventory.register(name="kafka_msgs.wire", domain="py", role="module", uri="x", priority="1", dispname="-")
    (tmp_path / "objects.inv").write_bytes(inventory.format_sphinx())
    monkeypatch.setattr(hook, "_public_names", lambda: iter(["kafka_msgs.wire", "kafka_msgs.wire.decode_request"]))
    with caplog.at_level(logging.WARNING):
        hook.on_post_build(SimpleNamespace(site_dir=tmp_path))
    assert [record.getMessage() for record in caplog.records] == [
        "kafka_msgs.wire.decode_request is public and not in the reference"
    ]


def test_options_of_blocks_are_dropped(hook: ModuleType) -> None:
    assert hook.on_page_markdown("```python file=x.py\nx = 1\n```") == "```python\nx = 1\n```"
