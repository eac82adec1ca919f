"""Converts a definition as written to the checked and resolved message.

Defines name resolution (rules V24 and V46-V56), the versions in which a struct can exist, and the order of structs:
each struct comes after the structs that it uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import define, field

from kafka_msgs.primitive_types import PRIMITIVES
from kafka_msgs.versions import NONE, VersionRange
from kafka_msgs_generator.checks import check_field, check_siblings
from kafka_msgs_generator.defaults import read_default
from kafka_msgs_generator.ir import UNDOCUMENTED, Documentation, Field, Message, Struct
from kafka_msgs_generator.naming import attribute_name, json_name
from kafka_msgs_generator.spec import FieldSpec, MessageSpec, StructSpec

__all__ = ["lower_message"]

_SPEAKS_OF_VERSIONS: Final = re.compile(r"\bversions? \d")


def lower_message(spec: MessageSpec, documentation: Documentation = UNDOCUMENTED) -> Message:
    """Return the message that ``spec`` defines; raise ``SchemaError`` if its parts contradict each other.

    A retired message keeps its name and key and loses its fields.
    """
    structs, fields = _Lowering(spec, documentation).run() if not spec.retired else ((), ())
    return Message(
        name=spec.name,
        kind=spec.kind,
        api_key=spec.api_key,
        versions=spec.versions,
        flexible=spec.flexible,
        deprecated=spec.deprecated,
        listeners=spec.listeners,
        unstable=spec.unstable,
        header_versions=spec.header_versions,
        errors=spec.errors,
        structs=structs,
        fields=fields,
        doc=documentation.message(spec.name, spec.versions) or spec.about,
    )


def _presence(versions: VersionRange, whole: VersionRange) -> str:
    """Return a sentence about the versions of a struct that have a field."""
    if versions.lowest == versions.highest:
        return f"In version {versions.lowest} only."
    if versions.highest == whole.highest:
        return f"From version {versions.lowest}."
    if versions.lowest == whole.lowest:
        return f"Up to version {versions.highest}."
    return f"In versions {versions.lowest} to {versions.highest}."


def _walk(fields: Sequence[FieldSpec]) -> Iterator[FieldSpec]:
    for spec in fields:
        yield spec
        yield from _walk(spec.fields)


@define
class _Scope:
    """The scope of fields: their struct, their versions, and their path."""

    struct: str
    versions: VersionRange
    attributes: tuple[str, ...]
    names: tuple[str, ...]
    common: bool = False


@define
class _Lowering:
    """One run over a message. ``done`` fills leaf first; ``open`` holds the common structs being resolved."""

    spec: MessageSpec
    documentation: Documentation
    common: dict[str, StructSpec] = field(factory=dict)
    inline: dict[str, FieldSpec] = field(factory=dict)
    done: dict[str, Struct] = field(factory=dict)
    open: list[str] = field(factory=list)

    def run(self) -> tuple[tuple[Struct, ...], tuple[Field, ...]]:
        self._register_common()
        self._register_inline()
        for spec in self.spec.fields:
            if spec.map_key:
                raise spec.site.error("V56", "a map key must be in a struct, not in the message itself", "mapKey")
        scope = _Scope(self.spec.name, self.spec.versions, (self.spec.name,), ())
        fields = self._fields(self.spec.fields, scope)
        for struct in self.spec.common:
            self._common_struct(struct)
        return tuple(self.done.values()), fields

    def _register_common(self) -> None:
        for struct in self.spec.common:
            if struct.name == self.spec.name:
                raise struct.site.error("V55", f"the struct {struct.name!r} has the message's own name", "name")
            if struct.name in self.common:
                raise struct.site.error("V48", f"the common struct {struct.name!r} is defined twice", "name")
            self.common[struct.name] = struct

    def _register_inline(self) -> None:
        for spec in _walk(self.spec.fields):
            if not spec.fields or not spec.type.is_struct:
                continue
            name = spec.type.element
            if name == self.spec.name:
                raise spec.site.error("V55", f"the struct {name!r} has the message's own name", "type")
            if name in self.common:
                raise spec.site.error("V49", f"{name!r} is a common struct, so no field defines it again", "fields")
            if name in self.inline:
                line = self.inline[name].site.node.line
                raise spec.site.error("V47", f"the struct {name!r} is already defined in line {line}", "type")
            self.inline[name] = spec

    def _fields(self, specs: Sequence[FieldSpec], scope: _Scope) -> tuple[Field, ...]:
        for spec in specs:
            check_field(spec, self.spec.flexible)
        check_siblings(specs, scope.struct)
        return tuple(self._field(spec, scope) for spec in specs)

    def _field(self, spec: FieldSpec, scope: _Scope) -> Field:
        attribute = attribute_name(spec.name)
        names = (*scope.names, json_name(spec.name))
        if spec.type.is_struct:
            self._struct(spec, _Scope(
                spec.type.element, self._versions(spec, scope), (*scope.attributes, attribute), names, scope.common
            ))  # fmt: skip
        return Field(
            name=spec.name,
            attribute=attribute,
            type=spec.type,
            versions=spec.versions,
            nullable=spec.nullable,
            tag=spec.tag,
            tagged=spec.tagged,
            flexible=spec.flexible,
            default=read_default(spec),
            ignorable=spec.ignorable,
            map_key=spec.map_key,
            entity=spec.entity,
            zero_copy=spec.zero_copy,
            doc=self._doc(spec, names, scope),
        )

    def _doc(self, spec: FieldSpec, names: tuple[str, ...], scope: _Scope) -> str:
        """Return the field's description. It lists the versions if the field has fewer than its struct and the
        text does not list any.
        """
        text = self.documentation.field(self.spec.name, names, scope.struct, self.spec.versions) or spec.about
        versions = scope.versions.intersect(spec.versions)
        if not text or versions in (NONE, scope.versions) or _SPEAKS_OF_VERSIONS.search(text):
            return text
        closed = text if text.endswith((".", "!", "?")) else f"{text}."
        return f"{closed} {_presence(versions, scope.versions)}"

    def _versions(self, spec: FieldSpec, scope: _Scope) -> VersionRange:
        versions = scope.versions.intersect(spec.versions)
        if versions.empty:
            reason = f"versions {spec.versions} have nothing in common with {scope.versions} of {scope.struct}"
            raise spec.site.error("V46", reason, "versions")
        return versions

    def _struct(self, spec: FieldSpec, scope: _Scope) -> None:
        """Resolve the struct that ``spec`` defines or names; ``scope`` is the inside of that struct."""
        if spec.type.element in self.common:
            self._use_common(spec, scope)
        elif not spec.fields:
            self._refuse_reference(spec, scope)
        elif scope.common:
            reason = f"the common struct {scope.attributes[0]} defines {spec.type.element!r} inside; make it common too"
            raise spec.site.error("V51", reason, "fields")
        else:
            fields = self._fields(spec.fields, scope)
            self.done[scope.struct] = Struct(
                name=scope.struct,
                origin=".".join(scope.attributes),
                element=spec.type.array,
                versions=scope.versions,
                fields=fields,
            )

    def _use_common(self, spec: FieldSpec, scope: _Scope) -> None:
        struct = self.common[spec.type.element]
        if struct.name in self.open:
            chain = " -> ".join((*self.open[self.open.index(struct.name) :], struct.name))
            raise spec.site.error("V53", f"recursive struct {chain}", "type")
        if not struct.versions.contains(scope.versions):
            reason = f"versions {scope.versions} of {spec.name} reach beyond {struct.versions} of {struct.name}"
            raise spec.site.error("V54", reason, "versions")
        self._common_struct(struct)

    def _common_struct(self, struct: StructSpec) -> None:
        if struct.name in self.done:
            return
        self.open.append(struct.name)
        versions = struct.versions.intersect(self.spec.versions)
        fields = self._fields(struct.fields, _Scope(struct.name, versions, (struct.name,), (), common=True))
        self.open.pop()
        self.done[struct.name] = Struct(
            name=struct.name, origin=None, element=False, versions=versions, fields=fields, doc=struct.about
        )

    def _refuse_reference(self, spec: FieldSpec, scope: _Scope) -> None:
        name = spec.type.element
        if name in self.inline and scope.common:
            reason = f"the common struct {scope.attributes[0]} uses {name!r}, which a field defines; make it common too"
            raise spec.site.error("V52", reason, "type")
        if name in self.inline:
            line = self.inline[name].site.node.line
            reason = f"the struct {name!r} is defined by the field in line {line}; make it a common struct to share it"
            raise spec.site.error("V47", reason, "type")
        hint = f"; did you mean {name.lower()!r}?" if name.lower() in PRIMITIVES else ""
        raise spec.site.error("V24", f"the struct {name!r} has no definition{hint}", "type")
