"""The differences between two imports as text, as Markdown, as JSON, and as an HTML page.

`release_diff` finds the differences. The page is a report of ``kafka_msgs.report``, like the pages of other commands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kafka_msgs_generator.ir import Message
from kafka_msgs_generator.release_diff import ABSENT, MessageDiff, ReleaseDiff

__all__ = ["DIFF_FORMATS", "render_diff"]

_INTRODUCTION: Final = """\
Changes of the messages, as printed by `kafka-msgs-generator diff --format markdown`. A field is shown with its type,
its versions, and further facts: *null* precedes the versions in which it may be null. Defaults that are zero or empty
are omitted.
"""
_HEAD: Final = ("fact", "before", "now")

Since = Mapping[str, str]
"""The first release of messages."""


def render_diff(diff: ReleaseDiff, output_format: str, since: Since | None = None) -> str:
    """Return the differences in one of ``DIFF_FORMATS``. HTML raises ``MissingExtraError`` without Jinja2."""
    return _RENDERERS[output_format](diff, since or {})


def _message_cells(message: Message) -> tuple[str, str, str, str]:
    key = "" if message.api_key is None else str(message.api_key)
    return message.name, message.kind, key, str(message.versions)


def _error_cells(diff: ReleaseDiff) -> Iterator[tuple[str, str, str]]:
    for name, *codes in diff.errors:
        before, now = (ABSENT if code is None else str(code) for code in codes)
        yield name, before, now


# Markdown


def _markdown(diff: ReleaseDiff, since: Since) -> str:
    errors = [_table(("error", "before", "now"), _error_cells(diff))] if diff.errors else []
    parts = [
        f"# From Kafka {diff.old} to {diff.new}\n",
        _INTRODUCTION,
        _messages("New messages", diff.added),
        _messages("Messages that are gone", diff.removed, since),
        _section("Changed messages", [_markdown_message(each) for each in diff.changed]),
        _section("Error codes", errors),
    ]
    return "\n".join(part for part in parts if part)


def _section(title: str, blocks: Sequence[str]) -> str:
    return "\n".join([f"## {title}\n", *blocks]) if blocks else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _messages(title: str, messages: Sequence[Message], since: Since | None = None) -> str:
    head = ("message", "kind", "key", "versions", *(["since Kafka"] if since else []))
    rows = [_message_cells(each) + ((since.get(each.name, ""),) if since else ()) for each in messages]
    return _section(title, [_table(head, rows)] if messages else [])


def _markdown_message(each: MessageDiff) -> str:
    rows = [*each.facts, *((f"`{path}`", *texts) for path, *texts in each.fields)]
    table = _table(_HEAD, rows) if rows else "The fields are in another order.\n"
    wire = each.wire.replace("Not compatible", "**Not compatible**")
    return f"### {each.name}\n\n{table}\n{wire}\n"


# Text


def _text(diff: ReleaseDiff, since: Since) -> str:
    return "\n".join(_text_lines(diff, since)) + "\n"


def _text_lines(diff: ReleaseDiff, since: Since) -> Iterator[str]:
    yield f"Kafka {diff.old} -> {diff.new}"
    for sign, messages in (("+", diff.added), ("-", diff.removed)):
        for message in messages:
            name, kind, key, versions = _message_cells(message)
            number = f" {key}" if key else ""
            first = f", since {since[name]}" if sign == "-" and name in since else ""
            yield f"{sign} {name} ({kind}{number}), versions {versions}{first}"
    for each in diff.changed:
        yield f"~ {each.name}: {each.wire}"
        for what, before, now in (*each.facts, *each.fields):
            yield f"    {what}: {before} -> {now}"
    for name, before, now in _error_cells(diff):
        yield f"~ error {name}: {before} -> {now}"


# JSON


def _json(diff: ReleaseDiff, since: Since) -> str:
    made = {
        "old": diff.old,
        "new": diff.new,
        "added": [_json_message(each) for each in diff.added],
        "removed": [_json_message(each) | {"since": since.get(each.name)} for each in diff.removed],
        "changed": [_json_change(each) for each in diff.changed],
        "errors": [dict(zip(("name", "before", "now"), row, strict=True)) for row in diff.errors],
    }
    return json.dumps(made, indent=2) + "\n"


def _json_message(message: Message) -> dict[str, Any]:
    return {
        "name": message.name,
        "type": message.kind,
        "apiKey": message.api_key,
        "versions": str(message.versions),
        "flexibleVersions": str(message.flexible),
    }


def _json_change(each: MessageDiff) -> dict[str, Any]:
    rows = (
        (what, *(None if text == ABSENT else text for text in texts)) for what, *texts in (*each.facts, *each.fields)
    )
    return {
        "name": each.name,
        "changes": [dict(zip(_HEAD, row, strict=True)) for row in rows],
        "changedLayouts": list(each.changed_layouts),
    }


# HTML


def _html(diff: ReleaseDiff, since: Since) -> str:
    from kafka_msgs.report import Report, Table
    from kafka_msgs.report.html_page import render_page

    columns = ("message", "type", "key", "versions")
    gone = tuple((*_message_cells(each), since.get(each.name, "")) for each in diff.removed)
    rows = tuple((each.name, *row) for each in diff.changed for row in (*each.facts, *each.fields))
    sections = (
        Table("New messages", columns, tuple(map(_message_cells, diff.added))),
        Table("Removed messages", (*columns, "since"), gone),
        Table(
            "Shared versions of changed messages", ("message", "wire"), tuple((e.name, e.wire) for e in diff.changed)
        ),
        Table("Changed facts and fields", ("message", *_HEAD), rows, kinds=dict.fromkeys(("before", "now"), "text")),
        Table("Error codes", ("error", "before", "now"), tuple(_error_cells(diff))),
    )
    return render_page(Report(f"From Kafka {diff.old} to {diff.new}", sections))


_RENDERERS: Final[Mapping[str, Callable[[ReleaseDiff, Since], str]]] = {
    "text": _text,
    "markdown": _markdown,
    "json": _json,
    "html": _html,
}

DIFF_FORMATS: Final = tuple(_RENDERERS)
"""The names of the formats."""
