"""The message pages: every message has one, and its code, bytes, versions and releases are right."""

from __future__ import annotations

import re
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

from docs.tools import message_layout
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.message import Message
from kafka_msgs.message_history import message_history
from kafka_msgs.schema import fields
from tests.oracle import Decoded, Oracle
from tests.support.docs_tools import load_tool

CLASSES = tuple(iter_message_classes())

each_message = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """The MkDocs hook that writes the pages."""
    pytest.importorskip("mkdocs")
    return load_tool("message_pages")


def section(page: str, title: str) -> str:
    """Return the text of a section."""
    return re.split(rf"^## {title}(?: {{.*}})?\n", page, flags=re.MULTILINE)[1].partition("\n## ")[0]


@each_message
def test_the_example_is_what_the_code_of_the_page_encodes(pages: ModuleType, cls: type[Message]) -> None:
    page = pages.message_page(cls)
    names: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    version, data = pages.example_of(cls)
    assert names["message"] == cls.decode(data, version)
    assert names["message"].encode(version) == data
    assert f"$ kafka-msgs decode {cls.__name__} {version} {data.hex()} --explain" in page


@each_message
def test_the_annotated_example_accounts_for_every_byte(pages: ModuleType, cls: type[Message]) -> None:
    _, data = pages.example_of(cls)
    rows = re.findall(r"^\| (\d+) \| `(.*?)` \|", section(pages.message_page(cls), "Example"), re.MULTILINE)
    shown = {int(offset): text for offset, text in rows}
    starts = [*shown, len(data)]
    for start, end in pairwise(starts):
        assert bytes.fromhex(shown[start].rstrip("…")) == data[start:end][: pages._LONGEST_CELL]
    assert not shown or next(iter(shown)) == 0


@each_message
def test_the_layouts_cover_every_version_once(pages: ModuleType, cls: type[Message]) -> None:
    ranges = [versions for versions, _ in message_layout.layouts(cls)]
    assert sorted(version for versions in ranges for version in versions) == list(cls.INFO.versions)
    layout = section(pages.message_page(cls), "Byte layout")
    assert layout.count("### Version") == len(ranges)


@each_message
def test_the_fields_have_their_release_and_their_versions(pages: ModuleType, cls: type[Message]) -> None:
    page = pages.message_page(cls)
    history = message_history(cls)
    assert history is not None
    rows = {row.path: row for row in message_layout.field_rows(cls, cls.INFO.versions)}
    assert {info.attribute for info in fields(cls) if not info.versions.intersect(cls.INFO.versions).empty} <= set(rows)
    table = dict(re.findall(r"^\| `([\w.]+)` \| .*? \| .*? \| (.*?) \|", section(page, "Fields"), re.MULTILINE))
    assert table == {path: pages._since(history.fields.get(path, history.since)) for path in rows}
    if len(list(cls.INFO.versions)) > 1 and rows:
        marks = [line.count("●") + line.count("○") + line.count("◆") for line in matrix_rows(page)]
        assert marks == [len(list(row.versions)) for row in rows.values()]


def matrix_rows(page: str) -> list[str]:
    """Return the rows of the table of fields and versions."""
    return [line for line in section(page, "Fields by version").splitlines() if line.startswith("|")][2:]


@each_message
def test_the_page_has_purpose_partner_and_releases(pages: ModuleType, cls: type[Message]) -> None:
    page = pages.message_page(cls)
    assert page.partition(f"# {cls.__name__}\n\n")[2].partition("\n")[0]
    partner = pages.partner_of(cls)
    assert (partner is not None) == (cls.INFO.kind in pages._PARTNERS)
    assert partner is None or f"[{partner}]({partner}.md)" in page
    history = message_history(cls)
    assert history is not None
    assert section(page, "Releases").count("\n| ") == len(history.versions) + 2


def test_the_indexes_list_every_message(pages: ModuleType) -> None:
    for name in ("index", "by-release"):
        text = pages.INDEXES[name]()
        assert all(f"({cls.__name__}.md)" in text for cls in CLASSES), name
    by_key = pages.INDEXES["by-key"]()
    assert all(f"({cls.__name__}.md)" in by_key for cls in CLASSES if cls.INFO.kind in {"request", "response"})


def test_the_page_of_offset_fetch_names_its_kip_and_the_release_of_its_versions(pages: ModuleType) -> None:
    (cls,) = (cls for cls in CLASSES if cls.__name__ == "OffsetFetchRequest")
    page = pages.message_page(cls)
    assert "[KIP-88](by-kip.md#kip-88)" in page
    assert "| 10 | 4.1 |  |" in page
    assert "| `groups.member_epoch` | `int32` | 9–10, ignorable | 3.7 |" in page
    assert "(OffsetFetchRequest.md)" in pages.INDEXES["by-kip"]()


@pytest.mark.oracle
def test_kafka_confirms_the_examples(pages: ModuleType, oracle: Oracle) -> None:
    examples = [(cls.__name__, *pages.example_of(cls)) for cls in CLASSES]
    for (name, version, data), answer in zip(examples, oracle.decode_many(examples), strict=True):
        assert isinstance(answer, Decoded), f"{name} v{version}"
        assert answer.reencoded == data, f"{name} v{version}"
