"""The changes between two revisions as lines of text, as JSON, and as annotations of a GitHub workflow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from attrs import asdict

from kafka_msgs_generator.evolution_rules import EVOLUTION_RULES
from kafka_msgs_generator.field_evolution import SchemaChange

__all__ = ["EVOLUTION_FORMATS", "render_changes"]

Changes = Sequence[SchemaChange]


def render_changes(changes: Changes, output_format: str, old: str, new: str) -> str:
    """Return the changes in one of ``EVOLUTION_FORMATS``; ``old`` and ``new`` are the labels of the revisions."""
    return "".join(f"{line}\n" for line in _RENDERERS[output_format](changes, old, new))


def _text(changes: Changes, old: str, new: str) -> Iterator[str]:
    for change in changes:
        place = f"{change.file}:{change.line}: " if change.file else ""
        yield f"{place}{_sentence(change)}"
    broken = sum(not change.compatible for change in changes)
    yield f"{old} -> {new}: {len(changes)} changes, {broken} incompatible"


def _sentence(change: SchemaChange) -> str:
    verdict = "compatible" if change.compatible else "INCOMPATIBLE"
    subject = f"{change.message} {change.path}".rstrip()
    versions = f", in {change.versions}" if change.versions else ""
    return f"{verdict} ({change.rule}): {subject}: {change.reason}{versions}{_before_and_now(change)}"


def _before_and_now(change: SchemaChange) -> str:
    texts = [f"{name} [{text}]" for name, text in (("before", change.before), ("now", change.now)) if text]
    return f"; {', '.join(texts)}" if texts else ""


def _json(changes: Changes, old: str, new: str) -> Iterator[str]:
    broken = any(not change.compatible for change in changes)
    rows = [asdict(change) | {"requires": EVOLUTION_RULES[change.rule]} for change in changes]
    yield json.dumps({"old": old, "new": new, "compatible": not broken, "changes": rows}, indent=2)


def _github(changes: Changes, old: str, new: str) -> Iterator[str]:
    """Yield workflow commands: errors for incompatible changes, notices for all others."""
    for change in changes:
        level = "notice" if change.compatible else "error"
        place = {"file": change.file, "line": change.line} if change.file else {}
        properties = {**place, "title": f"{change.message} {change.rule}"}
        facts = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
        yield f"::{level} {facts}::{_data(_sentence(change))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_RENDERERS: Final[Mapping[str, Callable[[Changes, str, str], Iterator[str]]]] = {
    "text": _text,
    "json": _json,
    "github": _github,
}

EVOLUTION_FORMATS: Final = tuple(_RENDERERS)
"""The names of the formats."""
