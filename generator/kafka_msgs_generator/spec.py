"""The first stage: a definition as its author wrote it, each value read as its key requires.

Defines the keys of the format and the checks that need only one object (V1-V16, V67, V68, K1, H1, X1).
`kafka_msgs_generator.checks` checks relations between fields, and `kafka_msgs_generator.lower` resolves names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from attrs import frozen

from kafka_msgs.errors import SchemaError
from kafka_msgs.versions import MAX_VERSION, NONE, VersionRange
from kafka_msgs_generator.field_types import ENTITY_TYPES, FieldType, TypeTextError, parse_type
from kafka_msgs_generator.json_tree import Node
from kafka_msgs_generator.naming import RESERVED_CLASS_NAMES, module_name
from kafka_msgs_generator.source_object import SourceObject

__all__ = ["KEYED_KINDS", "KINDS", "FieldSpec", "MessageSpec", "StructSpec", "read_message"]

KEYED_KINDS: Final = ("request", "response", "metadata", "coordinator-key", "coordinator-value")
"""The kinds of message that are identified by a key (``apiKey``)."""

KINDS: Final = (*KEYED_KINDS, "header", "data")
"""Every kind of message."""

_LISTENERS: Final = ("zkBroker", "broker", "controller")
_MESSAGE_KEYS: Final = (
    "name", "type", "apiKey", "validVersions", "deprecatedVersions", "flexibleVersions", "fields", "commonStructs",
    "listeners", "latestVersionUnstable", "headerVersions", "supportedErrors", "about",
)  # fmt: skip
_STRUCT_KEYS: Final = ("name", "versions", "deprecatedVersions", "fields", "about")
_FIELD_KEYS: Final = (
    "name", "type", "versions", "fields", "nullableVersions", "taggedVersions", "tag", "flexibleVersions", "default",
    "ignorable", "mapKey", "entityType", "zeroCopy", "about",
)  # fmt: skip
_FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
_CLASS_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*", re.ASCII)
_LONGEST_NAME = 200  # bytes of a module's file name, with room below the 255 of file systems
_ERROR_NAME = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)


@frozen(kw_only=True, eq=False)
class FieldSpec:
    """A field as written. ``versions`` falls back to the tagged versions; ``flexible`` is None without an override."""

    site: SourceObject
    name: str
    type: FieldType
    versions: VersionRange
    nullable: VersionRange
    tagged: VersionRange
    tag: int | None
    flexible: VersionRange | None
    default: str
    ignorable: bool
    map_key: bool
    entity: str | None
    zero_copy: bool
    about: str
    fields: tuple[FieldSpec, ...]


@frozen(kw_only=True, eq=False)
class StructSpec:
    """A common struct as written."""

    site: SourceObject
    name: str
    versions: VersionRange
    about: str
    fields: tuple[FieldSpec, ...]


@frozen(kw_only=True, eq=False)
class MessageSpec:
    """A whole definition as written. ``versions`` is empty for a retired message."""

    site: SourceObject
    name: str
    kind: str
    api_key: int | None
    versions: VersionRange
    deprecated: VersionRange
    flexible: VersionRange
    listeners: tuple[str, ...]
    unstable: bool
    header_versions: tuple[tuple[VersionRange, int], ...]
    errors: Mapping[str, VersionRange]
    about: str
    fields: tuple[FieldSpec, ...]
    common: tuple[StructSpec, ...]

    @property
    def retired(self) -> bool:
        """Whether the definition only reserves its key, without any remaining version of the message."""
        return self.versions.empty


def read_message(root: Node, source: str | None = None) -> MessageSpec:
    """Return the definition in ``root``; raise ``SchemaError`` if a value does not fit its key."""
    site = SourceObject.of(root, source, "", _MESSAGE_KEYS)
    kind = site.choice("type", KINDS)
    if kind is None:
        raise site.error("V4", "missing required key 'type'")
    versions = _valid_versions(site)
    spec = MessageSpec(
        site=site,
        name=_class_name(site, site.required_text("name"), "message"),
        kind=kind,
        api_key=site.integer("apiKey"),
        versions=versions,
        deprecated=site.versions("deprecatedVersions") or NONE,
        flexible=_flexible_versions(site, versions),
        listeners=site.choices("listeners", _LISTENERS),
        unstable=site.flag("latestVersionUnstable"),
        header_versions=_header_versions(site, kind),
        errors=_supported_errors(site),
        about=_about(site),
        fields=tuple(_read_field(node, site) for node in site.items("fields")),
        common=tuple(_read_struct(node, site) for node in site.items("commonStructs")),
    )
    _check_message(spec)
    return spec


def _check_message(spec: MessageSpec) -> None:
    site = spec.site
    if not spec.retired and not spec.versions.contains(spec.deprecated):
        reason = f"deprecatedVersions {spec.deprecated} reach beyond validVersions {spec.versions}"
        raise site.error("V15", reason, "deprecatedVersions")
    if spec.listeners and spec.kind != "request":
        raise site.error("V67", f"only a request has listeners, this is a {spec.kind}", "listeners")
    if spec.unstable and spec.kind != "request":
        reason = f"only a request has an unstable latest version, this is a {spec.kind}"
        raise site.error("V68", reason, "latestVersionUnstable")
    if spec.kind in KEYED_KINDS and spec.api_key is None:
        raise site.error("V69", f"a {spec.kind} needs an apiKey")
    if spec.kind == "coordinator-key" and not spec.retired:
        _check_coordinator_key(spec)


def _check_coordinator_key(spec: MessageSpec) -> None:
    if spec.versions != VersionRange(0, 0):
        raise spec.site.error("K1", f"a coordinator-key has version 0 alone, not {spec.versions}", "validVersions")
    if not spec.flexible.empty:
        raise spec.site.error("K1", f"a coordinator-key is never flexible, not {spec.flexible}", "flexibleVersions")


def _valid_versions(site: SourceObject) -> VersionRange:
    versions = site.versions("validVersions")
    if versions is None:
        raise site.error("V7", "validVersions is not stated", "validVersions")
    if versions.open_ended:
        raise site.error("V9", f"validVersions {versions} has no upper bound", "validVersions")
    return versions


def _flexible_versions(site: SourceObject, versions: VersionRange) -> VersionRange:
    """Read a message's flexible versions; empty text means none, but only a retired message may lack the key."""
    if site.text("flexibleVersions") is None and not versions.empty:
        raise site.error("V12", "flexibleVersions is not stated", "flexibleVersions")
    flexible = site.versions("flexibleVersions") or NONE
    if not flexible.empty and not flexible.open_ended:
        raise site.error("V13", f"flexibleVersions must be 'none' or open-ended, not {flexible}", "flexibleVersions")
    return flexible


def _class_name(site: SourceObject, name: str, what: str, key: str = "name") -> str:
    if not _CLASS_NAME.fullmatch(name):
        raise site.error("V25", f"{name!r} cannot name a {what}: it is not a capitalised identifier", key)
    if name in RESERVED_CLASS_NAMES:
        raise site.error("V25", f"{name!r} cannot name a {what}: generated code uses that name itself", key)
    if len(module_name(name).encode()) > _LONGEST_NAME:
        raise site.error("V25", f"{name[:20]!r}... is too long to name a {what}: its module needs a file name", key)
    return name


def _read_struct(node: Node, parent: SourceObject) -> StructSpec:
    site = SourceObject.of(node, parent.source, parent.path, _STRUCT_KEYS)
    name = site.required_text("name")
    if not name[:1].isupper():
        raise site.error("V50", f"the common struct {name!r} must start with an upper-case letter", "name")
    site.versions("deprecatedVersions")
    return StructSpec(
        site=site,
        name=_class_name(site, name, "struct"),
        versions=_stated_versions(site, name),
        about=_about(site),
        fields=tuple(_read_field(child, site) for child in site.items("fields")),
    )


def _stated_versions(site: SourceObject, name: str) -> VersionRange:
    versions = site.versions("versions")
    if versions is None:
        raise site.error("V7", f"the versions of {name!r} are not stated", "versions")
    return versions


def _read_field(node: Node, parent: SourceObject) -> FieldSpec:
    site = SourceObject.of(node, parent.source, parent.path, _FIELD_KEYS)
    name = site.required_text("name")
    if not _FIELD_NAME.fullmatch(name):
        raise site.error("V16", f"invalid field name {name!r}: it must be a letter, then letters and digits", "name")
    tagged = site.versions("taggedVersions") or NONE
    return FieldSpec(
        site=site,
        name=name,
        type=_read_type(site),
        versions=tagged if site.versions("versions") is None and not tagged.empty else _stated_versions(site, name),
        nullable=site.versions("nullableVersions") or NONE,
        tagged=tagged,
        tag=site.integer("tag"),
        flexible=site.versions("flexibleVersions"),
        default=site.text("default") or "",
        ignorable=site.flag("ignorable"),
        map_key=site.flag("mapKey"),
        entity=_entity(site),
        zero_copy=site.flag("zeroCopy"),
        about=_about(site),
        fields=tuple(_read_field(child, site) for child in site.items("fields")),
    )


def _read_type(site: SourceObject) -> FieldType:
    text = site.required_text("type")
    try:
        type_ = parse_type(text)
    except TypeTextError as error:
        raise site.error(error.rule, str(error), "type") from None
    if type_.is_struct:
        _class_name(site, type_.element, "struct", "type")
    return type_


def _about(site: SourceObject) -> str:
    """Return the author's ``about`` text in one line, without control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in site.text("about") or "").split())


def _entity(site: SourceObject) -> str | None:
    entity = site.choice("entityType", ENTITY_TYPES)
    return None if entity == "unknown" else entity


def _header_versions(site: SourceObject, kind: str) -> tuple[tuple[VersionRange, int], ...]:
    """Read the map from version ranges to header versions in newer definitions."""
    node = site.value("headerVersions")
    if node is None:
        return ()
    if kind not in ("request", "response"):
        raise site.error("H1", f"a {kind} has no headerVersions", "headerVersions")
    entries = _text_map(site, "headerVersions", "H1")
    if not all(text.isascii() and text.isdigit() for _, text in entries.values()):
        raise site.error("H1", "a header version is a whole number from 0", "headerVersions")
    result = tuple(
        (site.parse_versions(versions, "headerVersions", at), int(text)) for versions, (at, text) in entries.items()
    )
    expected = 0
    for versions, _ in sorted(result, key=lambda entry: entry[0].lowest):
        if versions.lowest != expected:
            raise site.error("H1", f"headerVersions goes on at {versions}, expected {expected}", "headerVersions")
        expected = versions.highest + 1
    if expected <= MAX_VERSION:
        raise site.error("H1", "the last range of headerVersions must be open-ended", "headerVersions")
    return result


def _supported_errors(site: SourceObject) -> Mapping[str, VersionRange]:
    errors = _text_map(site, "supportedErrors", "X1")
    for name in errors:
        if not _ERROR_NAME.fullmatch(name):
            raise site.error("X1", f"{name!r} is not the name of an error", "supportedErrors")
    return {name: site.parse_versions(text, f"supportedErrors {name}", at) for name, (at, text) in errors.items()}


def _text_map(site: SourceObject, key: str, rule: str) -> dict[str, tuple[Node, str]]:
    """Read an object whose values are texts or numbers; absent is empty."""
    node = site.value(key)
    if node is None:
        return {}
    if not isinstance(node.value, dict):
        raise site.error(rule, f"{key} must be an object", key)
    inner = SourceObject(site.source, site.path, node, node.value)
    return {name: (member.value, _entry(inner, name, rule)) for name, member in inner.members.items()}


def _entry(inner: SourceObject, name: str, rule: str) -> str:
    try:
        return inner.required_text(name)
    except SchemaError as error:
        raise inner.error(rule, error.reason, name) from None
