"""The Kafka releases in which each message, version and field was added and removed.

Defines ``message_defs/history.json``, which `record` extends release by release, oldest first. For each message, the
file lists its versions and its fields, grouped by span: ``2.2`` (since 2.2) or ``2.2-4.0`` (removed in 4.0). A release
is named by its minor version; a patch release is named only if it is the first one with a change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias

from attrs import Factory, define

from kafka_msgs.errors import SchemaError
from kafka_msgs.versions import VersionRange
from kafka_msgs_generator.release_diff import ImportedDefinitions, fields_by_path

__all__ = [
    "History",
    "first_releases",
    "history_json",
    "history_lines",
    "history_text",
    "later_fields",
    "read_history",
    "record",
    "version_spans",
]

_FILE: Final = "history.json"

_Spans: TypeAlias = dict[str, str]
"""Maps each item that a message ever had to the span of releases with it."""


@define
class History:
    """The recorded ``releases``, the newest last, and the spans of versions and of fields, by message and by path."""

    releases: list[str] = Factory(list)
    versions: dict[str, _Spans] = Factory(dict)
    fields: dict[str, _Spans] = Factory(dict)


def read_history(definitions: Path) -> History:
    """Read the history in a directory of definitions, or return an empty one if the file does not exist."""
    path = definitions / _FILE
    if not path.is_file():
        return History()
    data = json.loads(path.read_text(encoding="utf-8"))
    spans = ({name: _by_item(each[part]) for name, each in data["messages"].items()} for part in ("versions", "fields"))
    return History(data["releases"], *spans)


def record(history: History, release: str, imported: ImportedDefinitions) -> None:
    """Add a release to a history; raise ``SchemaError`` unless it is newer than the recorded ones."""
    if history.releases and _order(release) <= _order(history.releases[-1]):
        reason = f"{release} is not newer than {history.releases[-1]}; record releases from old to new"
        raise SchemaError(reason, source=_FILE)
    history.releases.append(release)
    label = release.removesuffix(".0") if release.count(".") > 1 else release
    for name in sorted(history.versions.keys() | imported.messages.keys()):
        message = imported.messages.get(name)
        versions = [str(version) for version in message.versions] if message else []
        _mark(history.versions.setdefault(name, {}), versions, label)
        _mark(history.fields.setdefault(name, {}), [*fields_by_path(message)] if message else [], label)


def _mark(spans: _Spans, present: Collection[str], label: str) -> None:
    """Open spans for new items and close the spans of missing items; an item that returns counts as never removed."""
    for item in present:
        spans[item] = spans.get(item, label).partition("-")[0]
    for item in spans.keys() - set(present):
        if "-" not in spans[item]:
            spans[item] += f"-{label}"


def _order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def _by_item(groups: Mapping[str, list[str]]) -> _Spans:
    return {item: span for span, items in groups.items() for item in items}


def _by_span(spans: _Spans) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for item, span in sorted(spans.items(), key=lambda each: [_order(release) for release in each[1].split("-")]):
        groups.setdefault(span, []).append(item)
    return groups


def history_text(history: History) -> str:
    """Return the text of ``history.json``: a line for each message."""
    messages = {
        name: {"versions": _by_span(versions), "fields": _by_span(history.fields[name])}
        for name, versions in sorted(history.versions.items())
    }
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(spans)}" for name, spans in messages.items())
    return f'{{\n  "releases": {json.dumps(history.releases)},\n  "messages": {{\n{lines}\n  }}\n}}\n'


def version_spans(history: History, name: str) -> dict[str, str]:
    """Return the versions of a message, as ranges, each with its span."""
    groups = _by_span(history.versions[name])
    runs = ((run, span) for span, items in groups.items() for run in _runs(sorted(map(int, items))))
    return {str(VersionRange(run[0], run[-1])): span for run, span in runs}


def _runs(numbers: list[int]) -> Iterator[list[int]]:
    """Split ascending numbers into runs without gaps."""
    for _, run in groupby(enumerate(numbers), key=lambda each: each[1] - each[0]):
        yield [number for _, number in run]


def first_releases(history: History) -> dict[str, str]:
    """Return the first release of each message."""
    return {name: next(iter(_by_span(versions))).partition("-")[0] for name, versions in history.versions.items()}


def later_fields(history: History, name: str) -> dict[str, str]:
    """Return the fields of a message that were added after its first release or removed, each with its span."""
    first = first_releases(history)[name]
    return {path: span for span, paths in _by_span(history.fields[name]).items() for path in paths if span != first}


def history_lines(history: History, name: str) -> Iterator[str]:
    """Yield the history of a message as readable text: its versions, then the fields added later or removed."""
    yield name
    for versions, span in version_spans(history, name).items():
        yield f"  {'versions' if '-' in versions else 'version'} {versions}: {_phrase(span)}"
    for span, paths in _by_span(later_fields(history, name)).items():
        yield f"  {', '.join(paths)}: {_phrase(span)}"


def history_json(history: History, names: Iterable[str]) -> str:
    """Return the history of messages as JSON: each version and each field with its span of releases."""
    made = {
        name: {"versions": _span_objects(history.versions[name]), "fields": _span_objects(history.fields[name])}
        for name in names
    }
    return json.dumps(made, indent=2)


def _span_objects(spans: _Spans) -> dict[str, dict[str, str | None]]:
    parts = ((item, *span.partition("-")) for item, span in spans.items())
    return {item: {"since": since, "removed": removed or None} for item, since, _, removed in parts}


def _phrase(span: str) -> str:
    since, _, removed = span.partition("-")
    return f"since {since}" + (f", removed in {removed}" if removed else "")
