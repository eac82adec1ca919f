"""The second stage: a checked and resolved definition, ready to be written as code.

All text is already parsed: types refer to structs of the same message, versions are ranges, defaults are Python values,
and attributes have their final names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, TypeAlias
from uuid import UUID

from attrs import frozen

from kafka_msgs.versions import VersionRange
from kafka_msgs_generator.field_types import FieldType

__all__ = ["UNDOCUMENTED", "Default", "Documentation", "Field", "Message", "NewStruct", "Struct"]


@frozen
class NewStruct:
    """The default of a struct field that is not null: a struct with all its fields at their defaults."""

    name: str


Default: TypeAlias = bool | int | float | str | bytes | UUID | tuple[()] | NewStruct | None
"""The value of a field that is absent or not set."""


@frozen(kw_only=True)
class Field:
    """A field. ``flexible`` is None without an override; ``doc`` is empty for an undocumented field."""

    name: str
    attribute: str
    type: FieldType
    versions: VersionRange
    nullable: VersionRange
    tag: int | None
    tagged: VersionRange
    flexible: VersionRange | None
    default: Default
    ignorable: bool
    map_key: bool
    entity: str | None
    zero_copy: bool
    doc: str

    @property
    def can_be_none(self) -> bool:
        """Whether None is a value of the field in some version, or its default."""
        return not self.nullable.empty or self.default is None


@frozen(kw_only=True)
class Struct:
    """A nested struct. ``origin`` is the attribute path of the field that defines it, or None for a common struct.

    ``versions`` are the versions in which it can exist; ``element`` is true for the element of an array.
    """

    name: str
    origin: str | None
    element: bool
    versions: VersionRange
    fields: tuple[Field, ...]
    doc: str = ""


@frozen(kw_only=True)
class Message:
    """A message. ``structs`` are ordered leaf first, so that each may refer to those before it."""

    name: str
    kind: str
    api_key: int | None
    versions: VersionRange
    flexible: VersionRange
    deprecated: VersionRange
    listeners: tuple[str, ...]
    unstable: bool
    header_versions: tuple[tuple[VersionRange, int], ...]
    errors: Mapping[str, VersionRange]
    structs: tuple[Struct, ...]
    fields: tuple[Field, ...]
    doc: str

    @property
    def retired(self) -> bool:
        """Whether the message has no remaining versions, so that no code is generated."""
        return self.versions.empty


class Documentation(Protocol):
    """The source of the sentences in generated docstrings."""

    def message(self, name: str, versions: VersionRange) -> str | None:
        """Return the purpose of the message; ``versions`` are its versions."""

    def field(self, message_name: str, path: tuple[str, ...], struct: str, versions: VersionRange) -> str | None:
        """Return a field's description. ``path`` holds its JSON names from the message down; ``struct`` is its class.

        The path of a common struct's field starts at the struct. ``versions`` are the message's versions.
        """


class _Undocumented:
    def message(self, name: str, versions: VersionRange) -> str | None:
        return None

    def field(self, message_name: str, path: tuple[str, ...], struct: str, versions: VersionRange) -> str | None:
        return None


UNDOCUMENTED: Final[Documentation] = _Undocumented()
"""Documentation without any entries."""
