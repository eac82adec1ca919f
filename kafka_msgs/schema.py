"""The vocabulary of generated code: ``Struct``, ``field`` and ``MessageInfo``.

A generated module is data: attrs classes whose fields contain the facts of Kafka's definition. This module owns that
description (``FieldInfo``, ``MessageInfo``) and the value semantics of the classes (equality, hash, repr, copies). It
does not handle bytes. ``kafka_msgs.codec`` compiles the description to a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

import attrs

from kafka_msgs._backend import backend_module
from kafka_msgs.deferred_attrs import METADATA_KEY, DeferredAttribute, Field, frozen, frozen_base
from kafka_msgs.instances.sealing import seal
from kafka_msgs.primitives import ZERO_UUID
from kafka_msgs.versions import NONE, VersionRange

__all__ = [
    "ZERO_UUID",
    "FieldInfo",
    "KeyedMessageInfo",
    "Kind",
    "MessageInfo",
    "Struct",
    "evolve",
    "field",
    "fields",
    "frozen",
]

if TYPE_CHECKING:
    from kafka_msgs.instances import python as _values
else:
    _values = backend_module("kafka_msgs.instances")

evolve = _values.evolve

StructClass: TypeAlias = "type[Struct]"

_Attribute: TypeAlias = tuple[str, Any, tuple[Any, ...] | None]
"""The name and the default of an attribute, and the description from ``field``."""

Kind: TypeAlias = Literal["request", "response", "header", "data", "metadata", "coordinator-key", "coordinator-value"]
"""The type of a definition, as in its JSON."""


@attrs.frozen(kw_only=True)
class FieldInfo:
    """One field of a message definition, with the facts of Kafka's schema.

    ``name`` is Kafka's spelling, and ``attribute`` the Python one. ``type`` is the text of the type in the definition,
    such as ``int32``, ``[]string`` or ``[]OffsetFetchRequestTopic``. For the latter, ``struct`` is its class.
    ``versions``, ``nullable`` and ``tagged`` are the versions in which the field exists, may be None, and is the tagged
    field ``tag``. ``flexible`` overrides the flexible versions of the message for this field only (None: no override).
    ``default`` is the value of an absent field. With ``ignorable``, a field that is set is silently omitted at a
    version that lacks it. ``map_key``, ``entity_type`` and ``zero_copy`` do not change the bytes.
    """

    name: str
    attribute: str
    type: str
    versions: VersionRange
    nullable: VersionRange
    tag: int | None
    tagged: VersionRange
    flexible: VersionRange | None
    default: Any
    ignorable: bool
    struct: StructClass | None
    map_key: bool
    entity_type: str | None
    zero_copy: bool

    @property
    def is_array(self) -> bool:
        """Whether the field is an array."""
        return self.type.startswith("[]")

    @property
    def element_type(self) -> str:
        """The text of the type of one element of an array, or of the field itself."""
        return self.type.removeprefix("[]")

    @property
    def json_name(self) -> str:
        """The name of the field in the JSON form of Kafka's converters."""
        return self.name[0].lower() + self.name[1:]


def _versions(text: str | VersionRange) -> VersionRange:
    return text if isinstance(text, VersionRange) else VersionRange.parse(text)


def _header_versions(
    given: Mapping[str, int] | tuple[tuple[VersionRange, int], ...],
) -> tuple[tuple[VersionRange, int], ...]:
    if isinstance(given, tuple):
        return given
    return tuple((VersionRange.parse(versions), header) for versions, header in given.items())


@attrs.frozen(kw_only=True)
class MessageInfo:
    """The message-level facts of a definition.

    ``kind`` is the type of the definition. ``api_key`` is None if the kind does not have one. ``errors`` maps the names
    of the errors that a response documents to the versions that may return them. ``draft`` names the page of a
    definition that was never released in this form, and is None otherwise.
    """

    name: str
    kind: Kind
    api_key: int | None = None
    versions: VersionRange = attrs.field(converter=_versions)
    flexible: VersionRange = attrs.field(converter=_versions)
    deprecated: VersionRange = attrs.field(converter=_versions, default=NONE)
    listeners: tuple[str, ...] = ()
    latest_version_unstable: bool = False
    errors: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    draft: str | None = None


@attrs.frozen(kw_only=True)
class KeyedMessageInfo(MessageInfo):
    """The message-level facts of a definition with a number: any kind except headers and data.

    ``api_key`` is the API key of a request or response. For a record, it is the record type, which is only unique
    within its origin. ``partner`` is the name of the matching message: the response of a request, or the value of a
    coordinator key. It is None if the definitions lack it, and for all other kinds. ``header_versions`` contains pairs
    of message versions and the header version, if the definition has them. Most definitions do not.
    """

    api_key: int
    partner: str | None = None
    header_versions: tuple[tuple[VersionRange, int], ...] = attrs.field(converter=_header_versions, factory=dict)


def field(
    name: str,
    type: str,
    versions: str = "0+",
    *,
    default: Any,
    struct: type[Struct] | None = None,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str = "none",
    flexible: str | None = None,
    ignorable: bool = False,
    map_key: bool = False,
    entity: str | None = None,
    zero_copy: bool = False,
) -> Any:
    """Declare a field of a generated class; ``FieldInfo`` describes the arguments.

    attrs treats the result as a field. The annotation is ``Any``, so that type checkers use the declared type of the
    attribute.
    """
    description = (
        default, name, type, versions, nullable, tag, tagged, flexible, ignorable, struct, map_key, entity, zero_copy
    )  # fmt: skip
    return Field(description)


@frozen_base(kw_only=True, repr=False, eq=False, weakref_slot=False)
class Struct:
    """Base of every generated class: an immutable value whose attributes are the fields of a definition.

    ``unknown_tagged_fields`` contains the tagged fields of this struct that are not in the definition, as pairs of tag
    and bytes in ascending order of tags. Decoding keeps them, equality compares them, and encoding writes them.

    Structs do not support weak references, which would make a small struct 12.5 % larger.
    """

    unknown_tagged_fields: tuple[tuple[int, bytes], ...] = ()

    # Whether instances consist only of their field values, see kafka_msgs.instances.sealing.
    _sealed: ClassVar[bool] = False

    # The class holds the objects that are derived from it, so an unused class can be collected.
    _attributes: ClassVar[tuple[_Attribute, ...] | None] = None
    _names: ClassVar[tuple[str, ...] | None] = None
    _fields: ClassVar[tuple[FieldInfo, ...] | None] = None
    _layout: ClassVar[Any] = None

    # The copy module calls these methods; with None it uses __reduce_ex__.
    __copy__: ClassVar[Any] = None
    __deepcopy__: ClassVar[Any] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._attributes = cls._names = cls._fields = None
        sealed = seal(cls, lambda: tuple((name, default) for name, default, _ in _attributes(cls)))
        cls.__copy__, cls.__deepcopy__ = (_copy, _deep_copy) if sealed else (None, None)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in attribute_names(self.__class__))

    def __hash__(self) -> int:
        return hash((self.__class__, *(getattr(self, name) for name in attribute_names(self.__class__))))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the fields with non-default values, by name."""
        if not self._sealed:
            return super().__reduce_ex__(protocol)
        values = ((name, getattr(self, name), default) for name, default, _ in _attributes(type(self)))
        return _rebuilt, (type(self), {name: value for name, value, default in values if value is not default})

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in attribute_names(self.__class__)[1:]]
        if self.unknown_tagged_fields:
            shown.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{self.__class__.__name__}({', '.join(shown)})"


def _attributes(cls: type[Any]) -> tuple[_Attribute, ...]:
    """Return all attributes of a class in the order of ``attrs.fields``, without completing the class."""
    found: tuple[_Attribute, ...] | None = cls._attributes
    if found is None:
        found = cls._attributes = _found_attributes(cls)
    return found


def _found_attributes(cls: type[Any]) -> tuple[_Attribute, ...]:
    made: Any = next(vars(base)["__attrs_attrs__"] for base in cls.__mro__ if "__attrs_attrs__" in vars(base))
    if not isinstance(made, DeferredAttribute):
        return tuple((each.name, each.default, each.metadata.get(METADATA_KEY)) for each in made)
    rest: Any = made.rest
    own = ((name, field.description) for name, field in rest.fields.items())
    return (*_attributes(rest.base), *((name, description[0], description) for name, description in own))


def _copy(value: Struct) -> Struct:
    """Return the value itself, because it is immutable."""
    return value


def _deep_copy(value: Struct, memo: dict[int, Any]) -> Struct:
    """Return the value itself if it is hashable and therefore deeply immutable; otherwise return a copy."""
    try:
        hash(value)
    except (TypeError, ValueError):  # ValueError: a view of a mutable buffer
        return type(value)(**{name: deepcopy(getattr(value, name), memo) for name in attribute_names(type(value))})
    return value


def _rebuilt(cls: type[Any], values: dict[str, Any]) -> Any:
    """Return the instance from a pickle."""
    return cls(**values)


class MessageStruct(Struct):
    """A top-level message struct, with a ``MessageInfo``."""

    __slots__ = ()

    INFO: ClassVar[MessageInfo]

    _codecs: ClassVar[dict[Any, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._codecs = {}


def attribute_names(cls: type[Any]) -> tuple[str, ...]:
    """The names of all attributes of a generated class: ``unknown_tagged_fields`` first, then the order of the
    definition.
    """
    names: tuple[str, ...] | None = cls._names
    if names is None:
        names = cls._names = tuple(name for name, _, _ in _attributes(cls))
    return names


PICKLE_VERSION: Final = "pickle version"
"""The key in ``_codecs`` of the version of the last pickle. Setting an attribute would slow the class down."""


def iter_pickle_versions(cls: type[Any]) -> Iterator[int]:
    """Yield versions to pickle a message at: the version of the last pickle first, then from the highest down."""
    last: int = cls._codecs.get(PICKLE_VERSION, -1)
    if last >= 0:
        yield last
    yield from (version for version in reversed(tuple(cls.INFO.versions)) if version != last)


def fields(cls: type[Any]) -> tuple[FieldInfo, ...]:
    """Return the fields of a generated class in the order of its definition."""
    found: tuple[FieldInfo, ...] | None = cls._fields
    if found is None:
        found = cls._fields = tuple(
            _field_info(name, description) for name, _, description in _attributes(cls) if description is not None
        )
    return found


def _field_info(attribute: str, description: tuple[Any, ...]) -> FieldInfo:
    (
        default,
        name,
        type_,
        versions,
        nullable,
        tag,
        tagged,
        flexible,
        ignorable,
        struct,
        map_key,
        entity,
        zero_copy,
    ) = description
    return FieldInfo(
        name=name,
        attribute=attribute,
        type=type_,
        versions=VersionRange.parse(versions),
        nullable=VersionRange.parse(nullable),
        tag=tag,
        tagged=VersionRange.parse(tagged),
        flexible=None if flexible is None else VersionRange.parse(flexible),
        default=default,
        ignorable=ignorable,
        struct=struct,
        map_key=map_key,
        entity_type=entity,
        zero_copy=zero_copy,
    )
