"""The changes of fields between two revisions of a message (rules E10-E22).

Structs are compared in pairs, each pair once, in the versions that both revisions have. A field belongs to the field of
the same name, or else to the unnamed counterpart at the same position. The versions are split into ranges in which all
facts are constant, so the effort does not depend on the number of versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from attrs import Factory, define, evolve, frozen

from kafka_msgs.versions import NONE, VersionRange
from kafka_msgs_generator.ir import Field, Message, NewStruct
from kafka_msgs_generator.release_diff import describe_field, struct_path

__all__ = ["SchemaChange", "compare_fields", "describe_field", "join_ranges"]


@frozen(kw_only=True)
class SchemaChange:
    """A change between two revisions of a message.

    ``rule`` is its number in ``EVOLUTION_RULES``. ``path`` is the field, or empty for the message itself. ``versions``
    are the shared versions that the change affects. ``before`` and ``now`` describe the changed thing, or are empty.
    ``file`` and ``line`` locate it in the new revision.
    """

    message: str
    rule: str
    compatible: bool
    reason: str
    path: str = ""
    versions: str = ""
    before: str = ""
    now: str = ""
    file: str = ""
    line: int | None = None


def compare_fields(old: Message, new: Message, shared: VersionRange) -> Iterator[SchemaChange]:
    """Yield the changes of all fields; only changes at a version in ``shared`` can be incompatible."""
    yield from _MessageComparison(old, new, shared).run()


def join_ranges(ranges: Iterable[VersionRange]) -> str:
    """Return ascending ranges as text, such as ``0-2, 4``."""
    joined: list[VersionRange] = []
    for each in ranges:
        if joined and joined[-1].highest == each.lowest - 1:
            joined[-1] = VersionRange(joined[-1].lowest, each.highest)
        else:
            joined.append(each)
    return ", ".join(map(str, joined))


@frozen
class _Layout:
    """The facts of a field at a version that decide its bytes."""

    tag: int | None
    nullable: bool
    flexible: bool


def _layout(field: Field, version: int, flexible: VersionRange = NONE) -> _Layout | None:
    """Return the layout of a field at a version, or None if it is absent; ``flexible`` are the message's versions."""
    if version not in field.versions:
        return None
    return _Layout(
        tag=field.tag if version in field.tagged else None,
        nullable=version in field.nullable,
        flexible=version in flexible and (field.flexible is None or version in field.flexible),
    )


@define
class _MessageComparison:
    """One run. ``_compared`` contains the pairs of struct names so far, the root first."""

    old: Message
    new: Message
    shared: VersionRange
    _compared: set[tuple[str, str]] = Factory(set)

    def run(self) -> Iterator[SchemaChange]:
        pending = [(self.old.name, self.new.name)]
        flexible = self.old.flexible.intersect(self.new.flexible)
        while pending:
            names = pending.pop()
            if names in self._compared:
                continue
            self._compared.add(names)
            before, now, versions = self._structs(*names)
            comparison = _StructComparison(before, now, versions, flexible)
            path = self._path(names[1])
            for change in comparison.changes():
                whole = f"{path}.{change.path}".strip(".")
                yield evolve(change, message=self.new.name, path=whole)
            pending += reversed(list(comparison.struct_pairs()))

    def _structs(self, old: str, new: str) -> tuple[Sequence[Field], Sequence[Field], VersionRange]:
        before, first = _struct(self.old, old)
        now, second = _struct(self.new, new)
        return before, now, self.shared.intersect(first).intersect(second)

    def _path(self, name: str) -> str:
        return (
            "" if name == self.new.name else next(struct_path(each) for each in self.new.structs if each.name == name)
        )


def _struct(message: Message, name: str) -> tuple[Sequence[Field], VersionRange]:
    if name == message.name:
        return message.fields, message.versions
    return next((each.fields, each.versions) for each in message.structs if each.name == name)


class _StructComparison:
    """The comparison of two structs in their shared versions."""

    def __init__(
        self, old: Sequence[Field], new: Sequence[Field], versions: VersionRange, flexible: VersionRange
    ) -> None:
        self._old = old
        self._new = new
        self._flexible = flexible
        self._ranges = list(_constant_ranges([*old, *new], versions, flexible))
        self._pairs = self._paired()

    def changes(self) -> Iterator[SchemaChange]:
        """Yield all changes, in the order of the new struct, removed fields last."""
        kept = {id(field) for field, _ in self._pairs}
        known = {id(new): old for old, new in self._pairs}
        for field in self._new:
            before = known.get(id(field))
            yield from self._added(field) if before is None else self._changed(before, field)
        for field in self._old:
            if id(field) not in kept:
                yield self._removed(field)
        yield from self._reordered()

    def struct_pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the names of structs that belong together."""
        for old, new in self._pairs:
            if old.type.is_struct and new.type.is_struct and old.type.array == new.type.array:
                yield old.type.element, new.type.element

    def _paired(self) -> list[tuple[Field, Field]]:
        """Pair fields by name in a shared version, then by position, and all others by name."""
        by_name = {field.attribute: field for field in self._new}
        named = [(field, by_name[field.attribute]) for field in self._old if field.attribute in by_name]
        pairs = [pair for pair in named if self._coexist(*pair)]
        taken = {id(field) for pair in pairs for field in pair}
        slots = {
            (self._positions(self._new, field), _form(field)): field for field in self._new if id(field) not in taken
        }
        for field in self._old:
            positions = self._positions(self._old, field)
            renamed = slots.pop((positions, _form(field)), None) if id(field) not in taken and positions else None
            if renamed is not None:
                pairs.append((field, renamed))
                taken |= {id(field), id(renamed)}
        return pairs + [(old, new) for old, new in named if not taken & {id(old), id(new)}]

    def _coexist(self, old: Field, new: Field) -> bool:
        """Return whether a shared version has both fields."""
        return any(each.lowest in old.versions and each.lowest in new.versions for each in self._ranges)

    def _positions(self, fields: Sequence[Field], field: Field) -> tuple[tuple[int, str], ...]:
        """Return the tag or the index of a field in each range that has it."""
        found = []
        for versions in self._ranges:
            layout = _layout(field, versions.lowest)
            if layout is not None and layout.tag is not None:
                found.append((versions.lowest, f"tag {layout.tag}"))
            elif layout is not None:
                before = (each for each in fields[: fields.index(field)] if _is_positional(each, versions.lowest))
                found.append((versions.lowest, str(sum(1 for _ in before))))
        return tuple(found)

    def _added(self, field: Field) -> Iterator[SchemaChange]:
        present = [versions for versions in self._ranges if _layout(field, versions.lowest)]
        positional = [versions for versions in present if _is_positional(field, versions.lowest)]
        retagged = [versions for versions in present if self._tag_was_used(field, versions.lowest)]
        now = describe_field(field)
        if positional:
            reason = "new field in existing versions"
            yield _change(field, "E11", reason, join_ranges(positional), now=now, compatible=False)
        elif retagged:
            reason = f"new field with the used tag {field.tag}"
            yield _change(field, "E21", reason, join_ranges(retagged), now=now, compatible=False)
        elif present:
            yield _change(field, "E12", "new tagged field in existing versions", join_ranges(present), now=now)
        else:
            yield _change(field, "E11", "new field in new versions", now=now)

    def _tag_was_used(self, field: Field, version: int) -> bool:
        layouts = (_layout(each, version) for each in self._old)
        return any(each is not None and each.tag is not None and each.tag == field.tag for each in layouts)

    def _removed(self, field: Field) -> SchemaChange:
        present = [versions for versions in self._ranges if _layout(field, versions.lowest)]
        reason = "removed from existing versions" if present else "removed together with its versions"
        before = describe_field(field)
        return _change(field, "E13", reason, join_ranges(present), before=before, compatible=not present)

    def _changed(self, old: Field, new: Field) -> Iterator[SchemaChange]:
        before, now = describe_field(old), describe_field(new)
        for rule, reason, versions, compatible in self._differences(old, new):
            yield _change(new, rule, reason, versions, before=before, now=now, compatible=compatible)

    def _differences(self, old: Field, new: Field) -> Iterator[tuple[str, str, str, bool]]:
        """Yield rule, reason, affected versions and compatibility of each difference between two fields."""
        if old.attribute != new.attribute:
            yield "E10", f"renamed from {old.attribute}", "", True
        flexible = self._flexible
        layouts = [
            (each, _layout(old, each.lowest, flexible), _layout(new, each.lowest, flexible)) for each in self._ranges
        ]
        both = [(each, one, other) for each, one, other in layouts if one is not None and other is not None]
        yield from self._presence(old, new, layouts)
        for rule, what, ranges, attribute in _RANGED_FACTS:
            differing = [each for each, one, other in both if getattr(one, attribute) != getattr(other, attribute)]
            if differing or any(getattr(old, name) != getattr(new, name) for name in ranges):
                yield rule, f"{what} changed", join_ranges(differing), not differing
        versions = join_ranges(each for each, _, _ in both)
        for rule, what, name in _PLAIN_FACTS:
            if getattr(old, name) != getattr(new, name):
                yield rule, f"{what} changed", versions if rule != "E22" else "", rule == "E22" or not both
        if _form(old) == _form(new) and _default(old) != _default(new):
            yield "E18", "default changed", versions, not both

    def _presence(
        self, old: Field, new: Field, layouts: Sequence[tuple[VersionRange, _Layout | None, _Layout | None]]
    ) -> Iterator[tuple[str, str, str, bool]]:
        lost = [each for each, one, other in layouts if one is not None and other is None]
        gained = [(each, other) for each, one, other in layouts if one is None and other is not None]
        positional = [each for each, layout in gained if layout.tag is None]
        if lost:
            yield (
                "E14" if _starts_alike(layouts) else "E15",
                "no longer in existing versions",
                join_ranges(lost),
                False,
            )
        if positional:
            yield "E15", "added to existing versions", join_ranges(positional), False
        elif gained:
            yield "E12", "added as a tagged field to existing versions", join_ranges(e for e, _ in gained), True
        if not lost and not gained and old.versions != new.versions:
            yield "E14", "versions changed outside of the shared ones", "", True

    def _reordered(self) -> Iterator[SchemaChange]:
        partner = {id(old): new for old, new in self._pairs}
        ranks = {id(field): rank for rank, field in enumerate(self._new)}
        moved: dict[str, list[VersionRange]] = {}
        for versions in self._ranges:
            order = [
                partner[id(field)]
                for field in self._old
                if id(field) in partner
                and _is_positional(field, versions.lowest)
                and _is_positional(partner[id(field)], versions.lowest)
            ]
            for one, other in pairwise(order):
                if ranks[id(one)] > ranks[id(other)]:
                    moved.setdefault(other.attribute, []).append(versions)
        for name, ranges in moved.items():
            field = next(each for each in self._new if each.attribute == name)
            yield _change(field, "E17", "moved in the order of fields", join_ranges(ranges), compatible=False)


_RANGED_FACTS: Final[tuple[tuple[str, str, tuple[str, ...], str], ...]] = (
    ("E19", "nullable versions", ("nullable",), "nullable"),
    ("E20", "flexible versions", ("flexible",), "flexible"),
    ("E21", "tag", ("tag", "tagged"), "tag"),
)
"""Rule, name, attributes of the field, and attribute of the layout, of the facts that depend on the version."""

_PLAIN_FACTS: Final[tuple[tuple[str, str, str], ...]] = (
    ("E16", "type", "type"),
    ("E22", "ignorable", "ignorable"),
    ("E22", "map key", "map_key"),
    ("E22", "entity type", "entity"),
    ("E22", "zero copy", "zero_copy"),
)


def _starts_alike(layouts: Sequence[tuple[VersionRange, _Layout | None, _Layout | None]]) -> bool:
    """Return whether both fields begin at the same shared version."""
    first = next(((one, other) for _, one, other in layouts if one is not None or other is not None), (None, None))
    return None not in first


def _default(field: Field) -> object:
    """Return the default of a field, regardless of the name of its struct."""
    return "new struct" if isinstance(field.default, NewStruct) else field.default


def _form(field: Field) -> str:
    """Return the encoding of a field's type: structs of any name are alike, and so are bytes and records."""
    element = "struct" if field.type.is_struct else field.type.element.replace("records", "bytes")
    return f"{'[]' if field.type.array else ''}{element}"


def _is_positional(field: Field, version: int) -> bool:
    return version in field.versions and version not in field.tagged


def _constant_ranges(fields: Sequence[Field], versions: VersionRange, flexible: VersionRange) -> Iterator[VersionRange]:
    """Split versions into ranges in which each field has one layout."""
    own = (each for field in fields for each in (field.versions, field.nullable, field.tagged, field.flexible))
    ranges = [flexible, *own]
    starts = {bound for each in ranges if each is not None for bound in (each.lowest, each.highest + 1)}
    if versions.empty:
        return
    inner = sorted({versions.lowest, *(start for start in starts if start in versions)})
    for start, end in zip(inner, [*inner[1:], versions.highest + 1], strict=True):
        yield VersionRange(start, end - 1)


def _change(
    field: Field,
    rule: str,
    reason: str,
    versions: str = "",
    *,
    before: str = "",
    now: str = "",
    compatible: bool = True,
) -> SchemaChange:
    return SchemaChange(
        message="",
        path=field.attribute,
        rule=rule,
        compatible=compatible,
        reason=reason,
        versions=versions,
        before=before,
        now=now,
    )
