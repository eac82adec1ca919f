"""Completes definitions from older Kafka releases to the current format.

Kafka's own generator has become stricter: up to release 2.8, a missing ``flexibleVersions`` meant ``none``, and in 3.5,
``taggedVersions`` replaced the missing ``versions`` of a field that defines a struct.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_msgs_generator.canonical import Definition

__all__ = ["complete"]


def complete(definition: Definition) -> Iterator[str]:
    """Add the facts that older releases omitted, and yield a note about each addition."""
    if "flexibleVersions" not in definition and definition.get("validVersions") != "none":
        definition["flexibleVersions"] = "none"
        yield "no flexibleVersions, read as never flexible"
    for field in _structs_without_versions(definition):
        field["versions"] = field["taggedVersions"]
        yield f"no versions of {field['name']}, read as those of its tag"


def _structs_without_versions(definition: Definition) -> Iterator[Definition]:
    for field in definition.get("fields", ()):
        if "fields" in field and "versions" not in field and "taggedVersions" in field:
            yield field
        yield from _structs_without_versions(field)
