"""The same message in other libraries: their decoding and encoding calls, verified to produce the same bytes.

Classes are found by the message's name, and the peers' own decoders create their values from our bytes, so each library
works on its preferred values.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final

import msgspec
from attrs import frozen
from kafka.protocol.api_message import ApiMessage
from kio.index import KioIndexError, load_entity_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from benchmarks.timing import Action
from kafka_msgs import Message
from kafka_msgs._backend import BACKENDS
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.options import DEFAULT_OPTIONS
from kafka_msgs.codec.plan import StructPlan, WireValue, compile_plan

__all__ = [
    "KAFKA_PYTHON",
    "KIO",
    "MSGSPEC",
    "MSGSPEC_TUPLES",
    "OURS",
    "Case",
    "codec",
    "executor",
    "kafka_python",
    "kio",
    "msgspec_case",
]

KAFKA_PYTHON: Final = "kafka-python"
KIO: Final = "kio"
MSGSPEC: Final = "msgspec"
MSGSPEC_TUPLES: Final = "msgspec, tuples, gc=False"

OURS: Final = tuple(name for name in BACKENDS if name != "reference")
"""Our executors that are optimized for speed, the fastest first."""


@frozen
class Case:
    """One library's calls for one message, as functions without arguments."""

    decode: Action
    encode: Action


def executor(name: str, message: Message, version: int) -> Case:
    """Return the case of one of our executors."""
    functions = codec(name, type(message), version)
    data = functions.encode(message)
    return Case(partial(functions.decode, data), partial(functions.encode, message))


def codec(name: str, cls: type[Message], version: int) -> Codec[Any]:
    """Return the codec of one of our executors."""
    return Codec(compile_plan(cls, version), DEFAULT_OPTIONS, EXECUTORS[name])


def kafka_python(name: str, version: int, data: bytes) -> Case | None:
    """Return kafka-python's case, or None if it is not comparable: it must produce the same bytes."""
    cls = _kafka_python_classes().get(name)
    if cls is None or not cls.min_version <= version <= cls.max_version:
        return None

    def make() -> Case:
        # Its decoded objects lack a header and so cannot be encoded; objects from its constructors can.
        message = _rebuilt(cls.decode(data, version=version), version)
        return Case(partial(cls.decode, data, version=version), partial(message.encode, version=version))

    return _comparable(make, data)


def _comparable(make: Callable[[], Case], data: bytes) -> Case | None:
    """Make a case and try it; exclude a library that reads or writes the message differently."""
    try:
        case = make()
        return case if case.encode() == data else None
    except Exception:  # Libraries may raise any exception; each one excludes the library.
        return None


def _kafka_python_classes() -> dict[str, Any]:
    for package in ("admin", "consumer", "metadata", "producer", "sasl"):
        import_module(f"kafka.protocol.{package}")
    return {cls.__name__: cls for cls in ApiMessage.__subclasses__()}


def _rebuilt(item: Any, version: int) -> Any:
    if isinstance(item, list):
        return [_rebuilt(each, version) for each in item]
    if not hasattr(item, "_struct"):
        return item
    present = (field.name for field in item._struct._fields if field.for_version_q(version))
    return type(item)(version=version, **{name: _rebuilt(getattr(item, name), version) for name in present})


def kio(cls: type[Message], version: int, data: bytes) -> Case | None:
    """Return kio's case, or None if it is not comparable: it must produce the same bytes."""
    info = cls.INFO
    try:
        entity: Any = load_entity_schema(_kio_name(info.name), version, _KIO_TYPES[info.kind])
    except (KioIndexError, KeyError):
        return None

    def make() -> Case:
        read, write = entity_reader(entity), entity_writer(entity)
        instance, _ = read(data, 0)

        def encode() -> bytes:
            buffer = io.BytesIO()
            write(buffer, instance)
            return buffer.getvalue()

        return Case(partial(read, data, 0), encode)

    return _comparable(make, data)


_KIO_TYPES: Final[dict[str, Any]] = {each.name: each for each in EntityType}


def _kio_name(name: str) -> str:
    stem = name.removesuffix("Request").removesuffix("Response")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in stem).lstrip("_")


def msgspec_case(message: Message, version: int, *, tuples: bool) -> Case:
    """Return msgspec's case: the same tree in MessagePack, structs as arrays, with lists or with tuples without gc."""
    plan = compile_plan(type(message), version).root
    cls = _msgspec_class(plan, tuples)
    tree = _msgspec_tree(message, plan, cls, tuples)
    decoder, encoder = msgspec.msgpack.Decoder(cls), msgspec.msgpack.Encoder(uuid_format="bytes")
    data = encoder.encode(tree)
    assert decoder.decode(data) == tree
    return Case(partial(decoder.decode, data), partial(encoder.encode, tree))


def _msgspec_class(plan: StructPlan, tuples: bool) -> Any:
    members = [(step.attribute, _msgspec_type(step.value, tuples)) for step in plan.steps]
    return msgspec.defstruct(plan.cls.__name__, members, array_like=True, frozen=True, gc=not tuples)


def _msgspec_type(value: WireValue, tuples: bool) -> Any:
    if value.op is Op.ARRAY:
        element = _msgspec_type(value.item, tuples)
        type_: Any = tuple[element, ...] if tuples else list[element]  # type: ignore[valid-type]
    elif value.op is Op.STRUCT:
        type_ = _msgspec_class(value.inner, tuples)
    else:
        type_ = value.op.kind.python
    return type_ | None if value.nullable else type_


def _msgspec_tree(item: Any, plan: StructPlan, cls: Any, tuples: bool) -> Any:
    types = msgspec.structs.fields(cls)
    return cls(
        *(
            _msgspec_value(getattr(item, step.attribute), step.value, field.type, tuples)
            for step, field in zip(plan.steps, types, strict=True)
        )
    )


def _msgspec_value(item: Any, value: WireValue, type_: Any, tuples: bool) -> Any:
    if item is None or value.op not in (Op.ARRAY, Op.STRUCT):
        return item
    if value.op is Op.STRUCT:
        return _msgspec_tree(item, value.inner, type_, tuples)
    element = type_.__args__[0]
    return (tuple if tuples else list)(_msgspec_value(each, value.item, element, tuples) for each in item)
