"""The message pages: an MkDocs hook that adds a page for every message of the release, and indexes of them.

Everything on a page is computed: from the classes, their documentation, the history of the releases, and the examples
in ``docs/messages/examples.json``, whose bytes Kafka's own classes confirmed (``python -m tests.vectors.readable``).
The pages are not in the menu; ``messages/index.md`` and the indexes by API key, error, KIP and release list them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.tools.message_layout import FieldRow, field_rows, layouts, struct_classes
from docs.tools.python_literals import construction
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.cli.render.documentation import class_documentation
from kafka_msgs.cli.render.hex_dump import annotate
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import CoordinatorKey, CoordinatorValue, Message, Request, Response
from kafka_msgs.message_history import message_history
from kafka_msgs.messages import ORIGINS
from kafka_msgs.versions import VersionRange
from kafka_msgs.wire import request_header_version, response_header_version

__all__ = ["INDEXES", "example_of", "message_page", "on_files"]

EXAMPLES: Final = Path(__file__).parents[1] / "messages" / "examples.json"

_NOT_IN_SEARCH: Final = " { data-search-exclude }"
"""An attribute of a heading: the search of the site omits the section."""

_KIP: Final = re.compile(r"KIP-\d+")
_ERROR: Final = re.compile(r"\b(?=[A-Z]+_)[A-Z_]+\b")
_FRONT: Final = "---\ndescription: {description}\nsearch:\n  {search}\n---\n\n"
_FIRST_IN_SEARCH: Final = "boost: 4"
_OMITTED_IN_SEARCH: Final = "exclude: true"
_LONGEST_CELL: Final = 32
"""Bytes of one value in the annotated example; longer values are cut."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of every message, and the indexes."""
    for cls in iter_message_classes():
        page = File.generated(
            config,
            f"messages/{cls.__name__}.md",
            content=message_page(cls),
            inclusion=InclusionLevel.NOT_IN_NAV,
        )
        files.append(page)
    for name, make in INDEXES.items():
        files.append(File.generated(config, f"messages/{name}.md", content=make()))
    return files


def message_page(cls: type[Message]) -> str:
    """Return the page of a message as Markdown."""
    purpose = class_documentation(cls)
    front = _FRONT.format(description=json.dumps(purpose, ensure_ascii=False), search=_FIRST_IN_SEARCH)
    parts = [f"# {cls.__name__}", purpose, *_sections(cls)]
    return front + "\n\n".join(part.rstrip() for part in parts) + "\n"


def _sections(cls: type[Message]) -> Iterator[str]:
    rows = list(field_rows(cls, cls.INFO.versions))
    yield _table(("property", "value"), _facts(cls))
    yield from (f"## Releases{_NOT_IN_SEARCH}", _releases(cls))
    yield from _example(cls)
    yield from (f"## Fields{_NOT_IN_SEARCH}", *_fields(cls, rows))
    if cls.INFO.versions.lowest != cls.INFO.versions.highest and rows:
        yield from (f"## Fields by version{_NOT_IN_SEARCH}", _matrix(cls, rows))
    yield from _layouts(cls)
    if errors := errors_of(cls):
        yield from (f"## Errors{_NOT_IN_SEARCH}", _errors(errors))


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _facts(cls: type[Message]) -> Iterator[tuple[str, object]]:
    info = cls.INFO
    history = message_history(cls)
    yield "Kind", f"{info.kind}, defined in Kafka's part `{ORIGINS[info.name]}`"
    if info.api_key is not None:
        yield "API key" if issubclass(cls, Request | Response) else "Record type", info.api_key
    if (partner := partner_of(cls)) is not None:
        yield _PARTNERS[info.kind], f"[{partner}]({partner}.md)"
    yield "Versions", _versions(info.versions)
    flexible = info.flexible.intersect(info.versions)
    yield "Flexible versions (KIP-482)", "none" if flexible.empty else _versions(flexible)
    if not info.deprecated.empty:
        yield "Deprecated versions", _versions(info.deprecated)
    if issubclass(cls, Request | Response):
        yield "Header", _headers(cls)
    if info.listeners:
        yield "Sent to", ", ".join(info.listeners)
    if history is not None:
        yield "Since Kafka", _since(history.since)
    if kips := kips_of(cls):
        yield "KIPs", ", ".join(f"[{kip}](by-kip.md#{kip.lower()})" for kip in kips)
    if names := dict.fromkeys(row.info.attribute for row in field_rows(cls, info.versions)):
        yield "Fields", ", ".join(f"`{name}`" for name in names)
    yield "Class", f"`{cls.__module__}.{cls.__name__}`"


_PARTNERS: Final = {
    "request": "Response",
    "response": "Request",
    "coordinator-key": "Value",
    "coordinator-value": "Key",
}


@cache
def _partners() -> Mapping[str, str]:
    pairs: dict[str, str] = {}
    for cls in iter_message_classes():
        if issubclass(cls, Request | CoordinatorKey) and cls.INFO.partner is not None:
            pairs |= {cls.__name__: cls.INFO.partner, cls.INFO.partner: cls.__name__}
    return pairs


def partner_of(cls: type[Message]) -> str | None:
    """Return the name of the response of a request, or of the value of a coordinator key, and the reverse."""
    return _partners().get(cls.__name__) if issubclass(cls, _PAIRED) else None


_PAIRED: Final = (Request, Response, CoordinatorKey, CoordinatorValue)


def _versions(versions: VersionRange) -> str:
    return str(versions).replace("-", "–")


def _since(release: str) -> str:
    return "2.2 or earlier" if release == "2.2" else release


def _headers(cls: type[Any]) -> str:
    header, version_of = (
        ("RequestHeader", request_header_version)
        if issubclass(cls, Request)
        else ("ResponseHeader", response_header_version)
    )
    by_header: dict[int, list[int]] = defaultdict(list)
    for version in cls.INFO.versions:
        by_header[version_of(cls.INFO.api_key, version)].append(version)
    shown = [
        f"version {number} (for {_versions(VersionRange(found[0], found[-1]))})" for number, found in by_header.items()
    ]
    return f"[{header}]({header}.md) {', '.join(shown)}"


def _releases(cls: type[Message]) -> str:
    history = message_history(cls)
    if history is None:
        return "The history of this message is not recorded."
    rows = ((_versions(span.versions), _since(span.since), span.removed or "") for span in history.versions)
    return _table(("versions", "since Kafka", "removed in"), rows)


def _example(cls: type[Message]) -> Iterator[str]:
    version, data = example_of(cls)
    message = cls.decode(data, version)
    yield f"## Example{_NOT_IN_SEARCH}"
    yield f"Version {version}, {len(data)} bytes, confirmed by Kafka's own class:"
    yield _table(("offset", "bytes", "field", "type", "value"), _annotated(cls, version, data))
    yield "In Python:"
    check = f"assert message.encode(version={version}).hex() == (\n{_lines(data)}\n)"
    yield f"```python\n{construction(message)}\n{check}\n```"
    yield "On the command line, the explained bytes and the fields of a version:"
    yield (
        f"```console\n$ kafka-msgs decode {cls.__name__} {version} {data.hex()} --explain\n"
        f"$ kafka-msgs show {cls.__name__} {version}\n```"
    )


def _lines(data: bytes, width: int = 32) -> str:
    parts = [data[start : start + width].hex() for start in range(0, len(data), width)] or [""]
    return "\n".join(f'    "{part}"' for part in parts)


def _annotated(cls: type[Message], version: int, data: bytes) -> Iterator[tuple[object, ...]]:
    for span in annotate(cls, version, data).spans:
        raw = data[span.start : span.end]
        cut = "…" if len(raw) > _LONGEST_CELL else ""
        value = span.value
        shown = value[:_LONGEST_CELL].hex() + cut if isinstance(value, bytes) else _value(value, span.kind)
        yield span.start, f"`{raw[:_LONGEST_CELL].hex(' ')}{cut}`", f"`{span.path or 'message'}`", span.kind, shown


def _value(value: object, kind: str) -> str:
    return "null" if value is None else f"`{value!r}`" if kind.endswith("string") else str(value)


@cache
def _examples() -> dict[str, Any]:
    examples: dict[str, Any] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return examples


def example_of(cls: type[Message]) -> tuple[int, bytes]:
    """Return the example of a message: its version and its bytes."""
    found = _examples()[cls.__name__]
    return found["version"], bytes.fromhex(found["hex"])


def _fields(cls: type[Message], rows: Sequence[FieldRow]) -> Iterator[str]:
    if not rows:
        yield "This message has no fields."
        return
    since = _field_releases(cls)
    yield _table(
        ("field", "type", "versions", "since Kafka", "default", "meaning"),
        (
            (f"`{row.path}`", f"`{row.info.type}`", _presence(row), since(row), f"`{row.info.default!r}`", row.about)
            for row in rows
        ),
    )
    yield "A field that Kafka renamed counts from the first release with its present name."
    if structs := struct_classes(cls):
        names = ", ".join(f"`{struct.__name__}`" for struct in structs)
        yield f"Classes of the nested values, in the same module: {names}."


def _presence(row: FieldRow) -> str:
    words = [_versions(row.versions)]
    nullable = row.info.nullable.intersect(row.versions)
    if not nullable.empty:
        words.append("nullable" if nullable == row.versions else f"nullable {_versions(nullable)}")
    tagged = row.info.tagged.intersect(row.versions)
    if not tagged.empty:
        words.append(f"tag {row.info.tag}")
    if row.info.ignorable:
        words.append("ignorable")
    return ", ".join(words)


def _field_releases(cls: type[Message]) -> Callable[[FieldRow], str]:
    """Return a function for the first release of a field. The release of its struct or message is the fallback."""
    history = message_history(cls)
    if history is None:
        return lambda row: ""

    def since(row: FieldRow) -> str:
        return _since(history.fields.get(row.path, history.since))

    return since


def _matrix(cls: type[Message], rows: Sequence[FieldRow]) -> str:
    versions = list(cls.INFO.versions)
    head = ("field", *map(str, versions))
    body = ((_indented(row.path), *(_cell(row, version) for version in versions)) for row in rows)
    legend = "● present, ○ present and nullable, ◆ tagged"
    return f"{legend}\n\n{_table(head, body)}"


def _indented(path: str) -> str:
    *above, name = path.split(".")
    return f"{'&emsp;' * len(above)}`{name.removesuffix('[]')}`"


def _cell(row: FieldRow, version: int) -> str:
    if version not in row.versions:
        return ""
    if version in row.info.tagged:
        return "◆"
    return "○" if version in row.info.nullable else "●"


def _layouts(cls: type[Message]) -> Iterator[str]:
    yield f"## Byte layout{_NOT_IN_SEARCH}"
    yield "Values in their order on the wire. Indented values belong to each element of the array or the struct above."
    for versions, rows in layouts(cls):
        yield f"### Version{'s' * (versions.lowest != versions.highest)} {_versions(versions)}{_NOT_IN_SEARCH}"
        body = ((_indented(row.path), row.type, row.form) for row in rows)
        yield _table(("value", "type", "bytes"), body) if rows else "No bytes."


def errors_of(cls: type[Message]) -> dict[ErrorCode, str]:
    """Return the errors that a message may contain, with their versions, or "" if no versions are known.

    Some definitions list errors. The documentation mentions others.
    """
    found = {ErrorCode[name]: _versions(VersionRange.parse(text)) for name, text in cls.INFO.errors.items()}
    mentioned = (ErrorCode[name] for name in _ERROR.findall(_prose(cls)) if name in ErrorCode.__members__)
    return found | {code: "" for code in mentioned if code not in found and code is not ErrorCode.NONE}


def kips_of(cls: type[Message]) -> list[str]:
    """Return the KIPs that the documentation of a message and its fields mentions, in order of their numbers."""
    return sorted(set(_KIP.findall(_prose(cls))), key=lambda kip: int(kip[4:]))


def _prose(cls: type[Message]) -> str:
    abouts = (row.about for row in field_rows(cls, cls.INFO.versions))
    return " ".join((class_documentation(cls), *abouts))


def _errors(errors: Mapping[ErrorCode, str]) -> str:
    rows = (
        (
            code.value,
            f"[{code.name}](../reference/troubleshooting.md#error-codes)",
            "yes" if code.retriable else "no",
            versions,
        )
        for code, versions in sorted(errors.items())
    )
    return _table(("code", "error", "retriable", "versions"), rows)


def _index(title: str, sentence: str, body: str, *, search: str = _OMITTED_IN_SEARCH) -> str:
    front = _FRONT.format(description=json.dumps(sentence), search=search)
    return f"{front}# {title}\n\n{sentence}\n\n{body}\n"


def _link(name: str) -> str:
    return f"[{name}]({name}.md)"


def _all_messages() -> str:
    rows = (
        (_link(cls.__name__), cls.INFO.kind, "" if cls.INFO.api_key is None else cls.INFO.api_key,
         _versions(cls.INFO.versions), _first_release(cls), class_documentation(cls))
        for cls in iter_message_classes()
    )  # fmt: skip
    sentence = "Every message of the release: purpose, versions, releases, byte layout and an example on its page."
    names = {"by-key": "API key", "by-error": "error", "by-kip": "KIP", "by-release": "release"}
    others = f"Also listed {', '.join(f'[by {name}]({page}.md)' for page, name in names.items())}."
    table = _table(("message", "kind", "key", "versions", "since Kafka", "purpose"), rows)
    return _index("Messages", sentence, f"{others}\n\n{table}")


def _first_release(cls: type[Message]) -> str:
    history = message_history(cls)
    return "" if history is None else _since(history.since)


def _by_key() -> str:
    requests = sorted(
        (cls for cls in iter_message_classes() if issubclass(cls, Request)), key=lambda cls: cls.INFO.api_key
    )
    rows = (
        (cls.INFO.api_key, _link(cls.__name__), _link(cls.INFO.partner or ""), _versions(cls.INFO.versions))
        for cls in requests
    )
    records = sorted(
        (cls for cls in iter_message_classes() if cls.INFO.kind in {"metadata", "coordinator-key"}),
        key=lambda cls: (ORIGINS[cls.__name__], cls.INFO.api_key),
    )
    types = ((ORIGINS[cls.__name__], cls.INFO.api_key, _link(cls.__name__)) for cls in records)
    body = "\n\n".join([
        "## Requests and responses", _table(("API key", "request", "response", "versions"), rows),
        "## Records", _table(("part of Kafka", "record type", "message"), types),
    ])  # fmt: skip
    return _index(
        "Messages by API key", "API keys of requests and responses, and record types of internal topics.", body
    )


def _grouped(keys_of: Callable[[type[Message]], Iterable[Any]]) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = defaultdict(list)
    for cls in iter_message_classes():
        for key in keys_of(cls):
            found[key].append(_link(cls.__name__))
    return found


def _by_error() -> str:
    found = _grouped(errors_of)
    rows = ((code.value, code.name, ", ".join(found[code])) for code in sorted(found))
    sentence = "Errors that a definition lists for a response, or that the documentation of a message mentions."
    return _index("Messages by error", sentence, _table(("code", "error", "messages"), rows))


def _by_kip() -> str:
    found = _grouped(kips_of)
    parts = (f"## {kip}\n\n{', '.join(found[kip])}" for kip in sorted(found, key=lambda kip: int(kip[4:])))
    sentence = "Kafka improvement proposals, and the messages that they concern."
    return _index("Messages by KIP", sentence, "\n\n".join(parts), search="boost: 1")


def _by_release() -> str:
    found: dict[str, list[str]] = defaultdict(list)
    for cls in iter_message_classes():
        history = message_history(cls)
        for span in history.versions if history is not None else ():
            found[span.since].append(f"{_link(cls.__name__)} {_versions(span.versions)}")
    releases = sorted(found, key=lambda release: tuple(map(int, release.split("."))), reverse=True)
    parts = (f"## Kafka {_since(release)}\n\n{', '.join(found[release])}" for release in releases)
    sentence = "Versions of messages by the Kafka release that introduced them. The record starts with Kafka 2.2."
    return _index("Messages by release", sentence, "\n\n".join(parts))


INDEXES: Final[Mapping[str, Callable[[], str]]] = {
    "index": _all_messages,
    "by-key": _by_key,
    "by-error": _by_error,
    "by-kip": _by_kip,
    "by-release": _by_release,
}
"""The index pages by name."""
