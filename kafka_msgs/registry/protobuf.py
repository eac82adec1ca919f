"""Protobuf: single messages, prefixed with their indexes in the schema, and columns of them.

Defines the Arrow type of a message, the compilation of schema texts to types, and the indexes of messages in their
file. ``protoc``, from ``grpcio-tools``, compiles the text, and ``protobuf`` reads the bytes.

===================================  ==============================================================================
Protobuf                             Arrow
===================================  ==============================================================================
int32, int64 and their variants      int32, int64
uint32, fixed32                      int64
uint64, fixed64                      decimal128(20, 0)
float, double, bool, string, bytes   float, double, bool, string, binary
enum                                 int32, its number, even if it has no name
repeated, map                        list, map
message                              struct
Timestamp                            timestamp in microseconds, with UTC; nanoseconds are truncated
Duration                             duration in microseconds, likewise
the wrappers, such as StringValue    their value
===================================  ==============================================================================

An absent field is null if the schema tracks its presence, and otherwise has the default of its type. Fields that the
reader's schema does not have are ignored.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import pyarrow as pa

from kafka_msgs.errors import MissingExtraError, RegisteredSchemaError
from kafka_msgs.primitives import read_uvarint, write_uvarint
from kafka_msgs.registry.arrow_shapes import ColumnShape, Decode, FieldCounter
from kafka_msgs.registry.protobuf_builtins import BUILT_IN_FILES
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver, resolve_references

try:
    import grpc_tools
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.json_format import ParseDict
    from google.protobuf.message import Message
    from google.protobuf.message_factory import GetMessageClass
except ImportError as error:
    raise MissingExtraError(feature="Protobuf", extra="registry", package="grpcio-tools") from error

__all__ = ["columns", "compile_file_set", "decoder", "encoder"]

_SCALARS: Final = {
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_ENUM: pa.int32(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_FIXED64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.decimal128(20, 0),
}
_US: Final = 1_000_000
_WELL_KNOWN: Final = {
    "google.protobuf.Timestamp": ColumnShape(pa.timestamp("us", "UTC"), lambda value: _microseconds(value)),
    "google.protobuf.Duration": ColumnShape(pa.duration("us"), lambda value: _microseconds(value)),
}
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_FILE: Final = "kafka_msgs_schema.proto"
_COMPILE_S: Final = 60
_FIRST: Final = (0,)
_Names: TypeAlias = Mapping[tuple[int, ...], str]
"""The full names of the messages in a file, by their indexes, from the outermost in."""


def columns(
    schema: RegisteredSchema, schemas: SchemaResolver, message: str | None
) -> tuple[ColumnShape, Callable[[RegisteredSchema], Decode]]:
    """Return the shape of columns with a reader's schema, and the function that returns the decoder of a writer's one.

    A column has the messages ``message``, or else the first ones of their file. See the table in the module docstring
    for the Arrow types. Raises ``RegisteredSchemaError`` for a schema that is not Protobuf, lacks the message, is
    recursive, or has too many fields, and the errors of ``schemas``.
    """
    pool, names = _compile(schema, schemas)
    name = message or names.get(_FIRST, "")
    cls = _message_class(pool, schema, name)
    shape = _Shapes(schema.id).of(cls.DESCRIPTOR)

    def decoder_of(writer: RegisteredSchema) -> Decode:
        written = names if writer.id == schema.id else _compile(writer, schemas)[1]
        return shape.decoder(partial(_decode, written, name, lambda _: cls))

    return shape, decoder_of


def encoder(schema: RegisteredSchema, schemas: SchemaResolver, message: str | None) -> Callable[[Any], bytes]:
    """Return the function that encodes messages, or dicts in Protobuf's JSON form."""
    pool, names = _compile(schema, schemas)
    cls = _message_class(pool, schema, message or names.get(_FIRST, ""))
    places = {name: _encode_place(place) for place, name in names.items()}

    def encode(value: Any) -> bytes:
        made = value if isinstance(value, Message) else ParseDict(value, cls())
        name = made.DESCRIPTOR.full_name
        if name not in places:
            raise ValueError(f"its schema has no message {name}")
        data: bytes = made.SerializeToString()
        return places[name] + data

    return encode


def decoder(
    writer: RegisteredSchema, reader: RegisteredSchema | None, schemas: SchemaResolver, message: str | None
) -> Decode:
    """Return the function that decodes messages of ``writer``, with the fields of ``reader``."""
    _, names = _compile(writer, schemas)
    target = reader or writer
    pool, _ = _compile(target, schemas)
    return partial(_decode, names, message, partial(_message_class, pool, target))


def _message_class(pool: DescriptorPool, schema: RegisteredSchema, name: str) -> Any:
    try:
        return GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError as error:
        raise RegisteredSchemaError(schema_id=schema.id, reason=f"it has no message {name}") from error


def _decode(names: _Names, message: str | None, class_of: Callable[[str], Any], payload: bytes) -> Any:
    """Return a message without a missing required field, as Java does; ``message`` is the only allowed name."""
    place, start = _message_indexes(payload)
    name = names.get(place)
    if name is None:
        raise ValueError(f"its schema has no message {list(place)}")
    if message is not None and name != message:
        raise ValueError(f"it is a {name}, not a {message}")
    cls = class_of(name)
    found = cls.FromString(payload[start:])
    if not cls.IsInitialized(found):
        raise ValueError(f"it has no {', '.join(cls.FindInitializationErrors(found))}, which is required")
    return found


class _Shapes:
    """Builds the shape of each part of a message."""

    def __init__(self, schema_id: int) -> None:
        self._fields = FieldCounter(schema_id)

    def of(self, message: Descriptor) -> ColumnShape:
        name = message.full_name
        if name in _WELL_KNOWN:
            return _WELL_KNOWN[name]
        if name in _WRAPPERS:
            return self._one(message.fields[0]).after(attrgetter("value"))
        with self._fields.inside(name, name):
            parts = {each.name: self._fields.counted(self._field(each)) for each in message.fields}
        absent = frozenset(each.name for each in message.fields if each.has_presence)
        return ColumnShape.of_fields(parts).after(partial(_content, list(parts), absent))

    def _field(self, field: FieldDescriptor) -> ColumnShape:
        if not field.is_repeated:
            return self._one(field)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields
            return self._one(value).mapped(_SCALARS[key.type]).after(dict)
        return self._one(field).listed().after(list)

    def _one(self, field: FieldDescriptor) -> ColumnShape:
        return ColumnShape(_SCALARS[field.type]) if field.message_type is None else self.of(field.message_type)


def _content(names: Sequence[str], absent: frozenset[str], message: Any) -> dict[str, Any]:
    """Return the fields of a message, with None for each absent field that is listed in ``absent``."""
    has_field = type(message).HasField  # a field may have the name of a method
    return {name: None if name in absent and not has_field(message, name) else getattr(message, name) for name in names}


def _microseconds(value: Any) -> int:
    """Return a Timestamp or a Duration in microseconds; the nanoseconds of a Duration have its sign."""
    return int(value.seconds) * _US + int(value.nanos / 1000)


def _message_indexes(payload: bytes) -> tuple[tuple[int, ...], int]:
    """Return the indexes of a message in its file, from the outermost in, and the start position of its bytes.

    The indexes are zigzag varints after their count. A count of zero means the first message.
    """
    count, at = _number(payload, 0)
    if not 0 <= count <= len(payload):
        raise ValueError(f"its message has {count} numbers")
    place = []
    for _ in range(count):
        index, at = _number(payload, at)
        place.append(index)
    return tuple(place) or _FIRST, at


def _encode_place(place: tuple[int, ...]) -> bytes:
    """Return indexes as zigzag varints after their count. The first message of a file is encoded as a single zero."""
    if place == _FIRST:
        return b"\0"
    return b"".join(write_uvarint(number << 1) for number in (len(place), *place))


def _number(payload: bytes, at: int) -> tuple[int, int]:
    value, end = read_uvarint(payload, at)
    return value >> 1 ^ -(value & 1), end


def _compile(schema: RegisteredSchema, source: SchemaResolver) -> tuple[DescriptorPool, _Names]:
    """Return the types of a schema and its dependencies, and the names of the messages in the schema itself."""
    found = FileDescriptorSet.FromString(compile_file_set(schema, source))
    pool = DescriptorPool()
    for file in found.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool, dict(_named(found.file[-1].message_type, found.file[-1].package, ()))


def _named(messages: Iterable[DescriptorProto], prefix: str, place: tuple[int, ...]) -> Iterator[tuple[Any, str]]:
    """Yield the indexes and the full name of each message. The implicit messages of map entries have no index."""
    for index, message in enumerate(each for each in messages if not each.options.map_entry):
        name = f"{prefix}.{message.name}".lstrip(".")
        yield (*place, index), name
        yield from _named(message.nested_type, name, (*place, index))


def compile_file_set(schema: RegisteredSchema, source: SchemaResolver) -> bytes:
    """Return the ``FileDescriptorSet`` of a schema: its dependencies, each after its own ones, and the schema."""
    files = tuple((name, other.text) for name, other in resolve_references(schema, source))
    return _protoc(schema.id, schema.text, files)


@lru_cache(maxsize=256)
def _protoc(schema_id: int, text: str, files: tuple[tuple[str, str], ...]) -> bytes:
    """Return the descriptors of a file and of all its imports, from ``files`` and from Protobuf itself."""
    with TemporaryDirectory(prefix="kafka-msgs-") as directory:
        folder, made = Path(directory, "in"), Path(directory, "out")
        _write(schema_id, folder, (*BUILT_IN_FILES.items(), *files, (_FILE, text)))
        known = Path(grpc_tools.__file__).parent / "_proto"
        # With -P, no module of the working directory takes the place of a package.
        command = [sys.executable, "-P", "-m", "grpc_tools.protoc", "--include_imports", f"--descriptor_set_out={made}"]
        command += [f"--proto_path={folder}", f"--proto_path={known}", _FILE]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_COMPILE_S, check=False, cwd=directory
            )
        except subprocess.TimeoutExpired as error:
            raise _refused(schema_id, f"protoc did not end within {_COMPILE_S} seconds") from error
        if done.returncode:
            said = [line.replace(f"{folder}/", "") for line in done.stderr.splitlines() if ".proto:" in line]
            raise _refused(schema_id, "; ".join(said).replace(f"{_FILE}:", "line "))
        return made.read_bytes()


def _write(schema_id: int, folder: Path, files: Iterable[tuple[str, str]]) -> None:
    folder.mkdir()
    for name, text in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            raise _refused(schema_id, f"a reference has the name {name!r}, which cannot be that of a file")
        try:
            folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            folder.joinpath(name).write_text(text, encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise _refused(schema_id, f"the file {name!r} cannot be written for protoc: {error}") from error


def _refused(schema_id: int, reason: str) -> RegisteredSchemaError:
    return RegisteredSchemaError(schema_id=schema_id, reason=f"it is not a schema of Protobuf: {reason}")
