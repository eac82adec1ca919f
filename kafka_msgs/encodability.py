"""The fate of each field of a message at a version: encoded, dropped because it is ignorable, or refused.

``Message.encode`` reports the first refused field only. ``can_encode`` examines all fields without encoding the
message, by the rules of Kafka's ``MessageDataGenerator``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from attrs import define, frozen

from kafka_msgs.codec import DEFAULT_OPTIONS, CodecOptions
from kafka_msgs.codec.ops import MAX_TAGS, Op
from kafka_msgs.codec.plan import AbsentField, Step, StructPlan, WireValue, compile_plan
from kafka_msgs.codec.reference.encoder import Encoder
from kafka_msgs.codec.value_checks import NotExactError, differs_from_default, exact_items, exact_struct, is_set
from kafka_msgs.errors import EncodeError
from kafka_msgs.message import Message

__all__ = ["Encodability", "Fate", "FieldFate", "can_encode", "versions_that_keep"]

_UNKNOWN: Final = "unknown_tagged_fields"


class Fate(StrEnum):
    """The fate of a field."""

    KEPT = "kept"
    """The field is encoded."""
    DROPPED = "dropped"
    """The field is set, the version lacks it, and it is ignorable: encoding omits it without an error."""
    REFUSED = "refused"
    """Encoding fails, because the version lacks the field or cannot carry its value."""


@define
class FieldFate:
    """The fate of a field in ``count`` structs of a message.

    ``path`` is the field without indices, such as ``groups.topics.name``, and ``first`` its first occurrence with this
    fate, such as ``groups[2].topics[0].name``. ``reason`` is the text of the error for a refused field.
    """

    path: str
    fate: Fate
    first: str
    reason: str = ""
    count: int = 0


@frozen
class Encodability:
    """The fates of a message's fields at a version, in the order of encoding; true if the message can be encoded.

    A field that the version lacks is listed only if it is set.
    """

    version: int
    fields: tuple[FieldFate, ...]

    def __bool__(self) -> bool:
        return not self.refused

    @property
    def refused(self) -> tuple[FieldFate, ...]:
        """The refused fields. ``encode`` raises an error for the first one."""
        return tuple(each for each in self.fields if each.fate is Fate.REFUSED)

    @property
    def dropped(self) -> tuple[FieldFate, ...]:
        """The dropped fields."""
        return tuple(each for each in self.fields if each.fate is Fate.DROPPED)


def can_encode(message: Message, version: int, *, options: CodecOptions = DEFAULT_OPTIONS) -> Encodability:
    """Return the fate of each field of a message at ``version``. Raises ``UnsupportedVersionError``.

    >>> from kafka_msgs import MetadataRequest
    >>> found = can_encode(MetadataRequest(topics=None), 0)
    >>> bool(found), found.refused[0].path, found.refused[0].reason
    (False, 'topics', 'None, which this version does not allow')
    """
    plan = compile_plan(type(message), version)
    walk = _Walk(Encoder(plan, options))
    walk.struct(plan.root, message, "", "")
    return Encodability(plan.version, tuple(walk.fates.values()))


def versions_that_keep(message: Message) -> tuple[int, ...]:
    """Return the versions at which every field of a message is encoded: none is dropped or refused."""
    found = ((version, can_encode(message, version)) for version in type(message).INFO.versions)
    return tuple(version for version, fates in found if fates and not fates.dropped)


class _Walk:
    """A traversal of a message in the order of encoding. ``path`` has no indices, ``place`` has."""

    def __init__(self, encoder: Encoder) -> None:
        self.fates: dict[tuple[str, Fate], FieldFate] = {}
        self._encoder = encoder

    def struct(self, plan: StructPlan, item: Any, path: str, place: str) -> None:
        for absent in plan.absent:
            self._absent(absent, getattr(item, absent.attribute), *_inside(path, place, absent.attribute))
        for step in plan.steps:
            self._value(step.value, getattr(item, step.attribute), *_inside(path, place, step.attribute))
        tags = 0
        for step in plan.tagged:
            value = getattr(item, step.attribute)
            if _is_written(step, value):
                tags += 1
                self._value(step.value, value, *_inside(path, place, step.attribute))
            else:
                self._add(Fate.KEPT, *_inside(path, place, step.attribute))
        self._unknown_fields(plan, item, tags, *_inside(path, place, _UNKNOWN))

    def _absent(self, absent: AbsentField, value: Any, path: str, place: str) -> None:
        if not differs_from_default(absent.value, absent.default, value):
            return
        if absent.ignorable:
            self._add(Fate.DROPPED, path, place)
        else:
            self._add(Fate.REFUSED, path, place, "set, but this version lacks the field")

    def _value(self, value: WireValue, item: Any, path: str, place: str) -> None:
        nested = value.item if value.op is Op.ARRAY else value
        if item is None or nested.op is not Op.STRUCT:
            self._attempt(lambda: self._encoder.value(value, item), path, place)
            return
        try:
            items = exact_items(item) if value.op is Op.ARRAY else (item,)
            structs = [exact_struct(nested.inner.cls, each) for each in items]
        except NotExactError:
            self._attempt(lambda: self._encoder.value(value, item), path, place)
            return
        self._add(Fate.KEPT, path, place)
        for number, each in enumerate(structs):
            self.struct(nested.inner, each, path, f"{place}[{number}]" if value.op is Op.ARRAY else place)

    def _unknown_fields(self, plan: StructPlan, item: Any, tags: int, path: str, place: str) -> None:
        """Examine undeclared tagged fields, which encoding writes after the declared ones."""
        if not plan.flexible:
            if is_set(item.unknown_tagged_fields):
                self._add(Fate.REFUSED, path, place, "this version has no tagged fields")
            return

        def check() -> None:
            found = self._encoder.unknown_tags(plan, item)
            if tags + len(found) > MAX_TAGS:
                self._encoder.unknown_fields_fail(f"at most {MAX_TAGS} tags are allowed", item)

        if is_set(item.unknown_tagged_fields):
            self._attempt(check, path, place)

    def _attempt(self, encode: Any, path: str, place: str) -> None:
        """Encode a value without structs, only to find out whether it can be encoded."""
        parts = self._encoder.path.parts
        try:
            encode()
        except EncodeError as error:
            self._add(Fate.REFUSED, path, place + _suffix(parts), error.reason)
        else:
            self._add(Fate.KEPT, path, place)
        finally:
            parts.clear()
            self._encoder.out.clear()

    def _add(self, fate: Fate, path: str, place: str, reason: str = "") -> None:
        found = self.fates.setdefault((path, fate), FieldFate(path, fate, place, reason))
        found.count += 1


def _is_written(step: Step, value: Any) -> bool:
    return differs_from_default(step.value, step.default, value)


def _suffix(parts: list[str]) -> str:
    """Return the index of the array element with the error, or empty text."""
    return "".join(part for part in parts if part.startswith("["))


def _inside(path: str, place: str, attribute: str) -> Iterator[str]:
    return (f"{each}.{attribute}" if each else attribute for each in (path, place))
