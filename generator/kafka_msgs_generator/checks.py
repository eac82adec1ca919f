"""Validity checks of single fields and of all fields in a struct (rules V17, V18 and V26-V45).

Each check examines one object and its siblings. `kafka_msgs_generator.lower` checks that the
referenced structs exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kafka_msgs.errors import SchemaError
from kafka_msgs.versions import VersionRange
from kafka_msgs_generator.field_types import ENTITY_TYPES
from kafka_msgs_generator.naming import attribute_name, json_name
from kafka_msgs_generator.spec import FieldSpec

__all__ = ["check_field", "check_siblings"]

_Check = Callable[[FieldSpec], SchemaError | None]


def check_field(field: FieldSpec, message_flexible: VersionRange) -> None:
    """Raise ``SchemaError`` when the keys of ``field`` contradict each other or the message's flexible versions."""
    for check in _CHECKS:
        error = check(field)
        if error is not None:
            raise error
    _check_flexible(field, message_flexible)


def check_siblings(fields: Sequence[FieldSpec], owner: str) -> None:
    """Raise ``SchemaError`` when fields of the struct ``owner`` share a name, an attribute or a tag, or skip a tag."""
    _check_unique(fields, "V17", lambda field: field.name, f"{owner} already has a field named", "name")
    for spelling in (attribute_name, json_name):
        problem = f"{owner} already has a field that becomes"
        _check_unique(fields, "V18", _spelled(spelling), problem, "name")
    tagged = [field for field in fields if field.tag is not None]
    _check_unique(tagged, "V36", lambda field: field.tag, f"{owner} already has a field with tag", "tag")
    for expected, field in enumerate(sorted(tagged, key=lambda field: field.tag or 0)):
        if field.tag != expected:
            raise field.site.error("V37", f"tag {field.tag} is used, but not tag {expected}", "tag")


def _check_unique(
    fields: Iterable[FieldSpec], rule: str, key: Callable[[FieldSpec], object], problem: str, at: str
) -> None:
    seen: dict[object, FieldSpec] = {}
    for field in fields:
        earlier = seen.setdefault(key(field), field)
        if earlier is not field:
            place = f"{earlier.name}, line {earlier.site.node.line}"
            raise field.site.error(rule, f"{problem} {key(field)!r} ({place})", at)


def _spelled(spelling: Callable[[str], str]) -> Callable[[FieldSpec], str]:
    return lambda field: spelling(field.name)


def _fields(field: FieldSpec) -> SchemaError | None:
    if field.type.is_struct or not field.fields:
        return None
    if field.type.array:
        return field.site.error("V27", f"{field.type} is an array of scalars, which cannot have fields", "fields")
    return field.site.error(
        "V26", f"{field.type} is neither a struct nor an array of structs and cannot have fields", "fields"
    )


def _stated_versions(field: FieldSpec) -> SchemaError | None:
    if field.fields and field.site.versions("versions") is None:
        reason = f"the versions of {field.name!r} are not stated; a field that defines a struct states them"
        return field.site.error("V28", reason)
    return None


def _nullable(field: FieldSpec) -> SchemaError | None:
    if field.nullable.empty or field.type.nullable:
        return None
    return field.site.error("V29", f"type {field.type} cannot be null, in {field.nullable}", "nullableVersions")


def _tag_alone(field: FieldSpec) -> SchemaError | None:
    site, tag, tagged = field.site, field.tag, field.tagged
    if tag is not None and tag < 0:
        return site.error("V30", f"tag {tag} is negative", "tag")
    if tag is not None and tagged.empty:
        return site.error("V31", f"tag {tag} is given without taggedVersions", "tag")
    if tag is None and not tagged.empty:
        return site.error("V32", f"taggedVersions {tagged} are given without a tag", "taggedVersions")
    if not tagged.empty and not tagged.open_ended:
        return site.error("V33", f"taggedVersions must be 'none' or open-ended, not {tagged}", "taggedVersions")
    return None


def _tag_versions(field: FieldSpec) -> SchemaError | None:
    site, tagged = field.site, field.tagged
    if not field.versions.contains(tagged):
        return site.error("V34", f"taggedVersions {tagged} reach beyond versions {field.versions}", "taggedVersions")
    nullable = field.nullable.intersect(tagged)
    if not nullable.empty and nullable != tagged:
        reason = f"of the tagged versions {tagged} only {nullable} can be null; it must be all or none"
        return site.error("V35", reason, "nullableVersions")
    return None


def _tag_type(field: FieldSpec) -> SchemaError | None:
    if field.tagged.empty:
        return None
    if field.map_key:
        return field.site.error("V38", f"a map key cannot be tagged, in {field.tagged}", "mapKey")
    if field.type.scalar == "records":
        return field.site.error("V40", f"records cannot be tagged, in {field.tagged}", "taggedVersions")
    return None


def _zero_copy(field: FieldSpec) -> SchemaError | None:
    if field.zero_copy and field.type.scalar != "bytes":
        return field.site.error("V44", f"only bytes can be zero-copy, not {field.type}", "zeroCopy")
    return None


def _entity(field: FieldSpec) -> SchemaError | None:
    expected = ENTITY_TYPES[field.entity or "unknown"]
    if expected in (None, field.type.element):
        return None
    return field.site.error("V45", f"entity type {field.entity} goes with {expected}, not {field.type}", "entityType")


_CHECKS: Final[tuple[_Check, ...]] = (
    _fields, _stated_versions, _nullable, _tag_alone, _tag_versions, _tag_type, _zero_copy, _entity
)  # fmt: skip


def _check_flexible(field: FieldSpec, message_flexible: VersionRange) -> None:
    own = field.flexible
    if own is not None and field.type.scalar not in ("string", "bytes"):
        reason = f"only a string or bytes field has flexibleVersions of its own, not {field.type}"
        raise field.site.error("V42", reason, "flexibleVersions")
    if own is not None and not message_flexible.contains(own):
        reason = f"flexibleVersions {own} reach beyond the message's flexibleVersions {message_flexible}"
        raise field.site.error("V43", reason, "flexibleVersions")
    flexible = message_flexible if own is None else own
    if not flexible.contains(field.tagged):
        reason = f"taggedVersions {field.tagged} reach beyond the flexible versions {flexible}"
        raise field.site.error("V39", reason, "taggedVersions")
