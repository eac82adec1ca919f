"""Access to selected fields: ``Peek`` reads fields and ``Patch`` changes them, without decoding the whole message.

Proxies need this. Fields between the selected ones are skipped, and fields after the last selected one are not read.
``Patch`` writes unselected fields back byte for byte, including unknown tagged fields, lengths that are longer than
necessary, and text that is not UTF-8. An instance serves one message and version, and accepts any number of payloads
from any thread.

Paths name fields as errors do: ``brokers[].host`` is the host of each broker, ``brokers[]`` each broker, and
``brokers`` the whole array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from kafka_msgs.codec import codec_for
from kafka_msgs.codec.error_explanation import Edit, PartFunctions, checked_buffer
from kafka_msgs.codec.executors import part_functions
from kafka_msgs.codec.options import DEFAULT_OPTIONS, Buffer, CodecOptions
from kafka_msgs.codec.plan import Plan, compile_plan
from kafka_msgs.codec.selection import select_fields
from kafka_msgs.schema import MessageStruct

__all__ = ["Edit", "Patch", "Peek"]

M = TypeVar("M", bound=MessageStruct)


class Peek(Generic[M]):
    """Reads chosen fields of a message: ``Peek(ProduceRequest, 9, "transactional_id", "topic_data[].name")``.

    ``peek(data, offset=0)`` returns a message in which all other fields have their defaults. Bytes after the last
    chosen field are not checked. It raises ``DecodeError``, and ``ValueError`` for an offset outside the data.

    The constructor raises ``UnsupportedVersionError``, ``UnknownColumnError`` for a path that no version of the message
    has, and ``OptionError`` for overlapping paths. It ignores fields that only other versions have.
    """

    __slots__ = ("_read", "plan")

    plan: Plan
    """The part of the plan that is read; ``print`` shows it."""

    def __init__(self, cls: type[M], version: int, *paths: str, options: CodecOptions = DEFAULT_OPTIONS) -> None:
        self.plan, (self._read, _) = _part(cls, version, paths, options)

    def __call__(self, data: Buffer, offset: int = 0) -> M:
        message: M = self._read(data, offset)[0]
        return message


class Patch:
    """Changes chosen fields of a message: ``Patch(MetadataResponse, 12, {"brokers[].host": local})``.

    ``edits`` maps paths to functions from value to value. A path may end at a struct or at an array. The empty path is
    the whole message, which is then decoded. A tagged field is edited only if the bytes contain it. It stays in them
    even with its default value.

    ``patch(data, offset=0)`` returns the changed data, or the same object if each function returned its argument
    unchanged. Bytes after the last chosen field are not checked. Raises ``DecodeError``, ``EncodeError`` for a value
    that does not fit its field, ``ValueError`` for an offset outside the data, and any error of the functions.

    The constructor raises the same errors as ``Peek``.
    """

    __slots__ = ("_edits", "_patch", "plan")

    plan: Plan
    """The part of the plan that is read; ``print`` shows it."""

    def __init__(
        self, cls: type[Any], version: int, edits: Mapping[str, Edit], *, options: CodecOptions = DEFAULT_OPTIONS
    ) -> None:
        self.plan, (_, self._patch) = _part(cls, version, tuple(edits), options)
        self._edits = tuple(edits.values())

    def __call__(self, data: Buffer, offset: int = 0) -> bytes:
        return self._patch(data, offset, self._edits)


def _part(cls: type[Any], version: int, paths: tuple[str, ...], options: CodecOptions) -> tuple[Plan, PartFunctions]:
    """Return a partial plan with its functions, built on first use. The class caches it like its codecs."""
    found: tuple[Plan, PartFunctions] | None = None
    if type(version) is int:  # True and 2.0 would find the parts of 1 and 2
        found = cls._codecs.get((version, options, paths))
    if found is None:
        plan = compile_plan(cls, version)
        part = plan if paths == ("",) else select_fields(plan, paths)
        functions = _whole(cls, version, options) if part is plan else part_functions(part, options)
        found = cls._codecs.setdefault((plan.version, options, paths), (part, functions))
    return found


def _whole(cls: type[Any], version: int, options: CodecOptions) -> PartFunctions:
    """Return the functions of the empty path."""
    codec = codec_for(cls, version, options)

    def patch(buffer: Buffer, offset: int, edits: tuple[Edit, ...]) -> bytes:
        data = checked_buffer(buffer, offset)
        old, end = codec.read(data, offset)
        new = edits[0](old)
        return data if new is old else b"".join((data[:offset], codec.encode(new), data[end:]))

    return PartFunctions(codec.read, patch)
