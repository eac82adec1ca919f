"""Definitions as older releases of Kafka wrote them, completed to the present form of the format.

Kafka's own generator has become stricter: up to release 2.8 it took a missing ``flexibleVersions`` for ``none``, and in
3.5 ``taggedVersions`` for the missing ``versions`` of a field that defines a struct.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_msgs_generator.canonical import Definition

__all__ = ["complete"]


def complete(definition: Definition) -> Iterator[str]:
    """Add the facts that older releases left out, and yield the reading of each gap."""
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
