"""Changes to single fields of a payload. All other bytes stay as they are, however they were encoded.

A proxy needs this to change an address or an id, and to pass on everything else. The fields of a header are replaced at
their places. The fields of a message are found by its definition. The message is read only up to the last field that
changes. A field in a tagged section gets a new size. Nothing else in a message depends on the size of a field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from struct import Struct
from typing import Any, Final, TypeAlias

from kafka_msgs.codec import Buffer, CodecOptions
from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.options import as_bytes
from kafka_msgs.codec.plan import Plan, Step, Value, compile_plan
from kafka_msgs.codec.reference import Decoder, Encoder
from kafka_msgs.errors import EncodeError, OptionError, UnknownColumnError, UnknownMessageError
from kafka_msgs.lookup import MessageCatalog, release_catalog
from kafka_msgs.message import Message, Request, Response
from kafka_msgs.messages.response_header import ResponseHeader
from kafka_msgs.primitives import write_uvarint
from kafka_msgs.schema import Struct as MessageStruct
from kafka_msgs.schema import fields
from kafka_msgs.wire.headers import (
    decode_request_header,
    header_version,
    read_correlation_id,
    read_request_prefix,
    request_header_version,
)

__all__ = [
    "Edit",
    "renumber_request",
    "renumber_response",
    "replace_client_id",
    "splice_request",
    "splice_response",
]

Edit: TypeAlias = Callable[[Any], Any]
"""Gets the value of a field, and returns the value to write. The same object means: no change."""

_OPTIONS: Final = CodecOptions(utf8_errors="surrogateescape")
_CORRELATION_ID: Final = Struct(">i")
_CLIENT_ID_LENGTH: Final = Struct(">h")
_CLIENT_ID_AT: Final = 8
_LONGEST_CLIENT_ID: Final = 2**15 - 1


def renumber_request(payload: Buffer, correlation_id: int) -> bytes:
    """Return the payload of a request with another correlation id. Raises ``TruncatedError``.

    A proxy that sends the requests of several clients on one connection needs this.
    """
    read_request_prefix(payload)
    data = as_bytes(payload)
    return b"".join((data[:4], _CORRELATION_ID.pack(correlation_id), data[_CLIENT_ID_AT:]))


def renumber_response(payload: Buffer, correlation_id: int) -> bytes:
    """Return the payload of a response with another correlation id. Raises ``TruncatedError``."""
    read_correlation_id(payload)
    return _CORRELATION_ID.pack(correlation_id) + as_bytes(payload)[_CORRELATION_ID.size :]


def replace_client_id(payload: Buffer, client_id: str | None, *, catalog: MessageCatalog | None = None) -> bytes:
    """Return the payload of a request with another client id.

    Every header has the client id at the same place, except for the one header that does not have it (version 0): it is
    returned unchanged. Raises ``DecodeError``, and ``EncodeError`` for a client id of more than 32,767 bytes.
    """
    data = as_bytes(payload)
    api_key, version, _ = read_request_prefix(data)
    with suppress(UnknownMessageError):
        if not request_header_version(api_key, version, catalog):
            return data
    _, end = decode_request_header(data, 1, _OPTIONS)
    name = b"" if client_id is None else client_id.encode("utf-8", "surrogateescape")
    if len(name) > _LONGEST_CLIENT_ID:
        reason = f"{len(name)} bytes of UTF-8, at most {_LONGEST_CLIENT_ID} are allowed"
        raise EncodeError(message="RequestHeader", version=None, path="client_id", value=client_id, reason=reason)
    length = -1 if client_id is None else len(name)
    return b"".join((data[:_CLIENT_ID_AT], _CLIENT_ID_LENGTH.pack(length), name, data[end:]))


def splice_request(payload: Buffer, edits: Mapping[str, Edit], *, catalog: MessageCatalog | None = None) -> bytes:
    """Return the payload of a request with changed fields; see ``splice_response`` for ``edits`` and the errors."""
    data = as_bytes(payload)
    api_key, version, _ = read_request_prefix(data)
    cls: type[Request[Response]] = (catalog or release_catalog()).message_class(api_key, "request", version)
    _, start = decode_request_header(data, header_version(cls, version), _OPTIONS)
    return _spliced(data, start, cls, version, edits)


def splice_response(
    payload: Buffer, api_key: int, version: int, edits: Mapping[str, Edit], *, catalog: MessageCatalog | None = None
) -> bytes:
    """Return the payload of a response with changed fields; ``api_key`` and ``version`` are those of its request.

    ``edits`` has paths of attributes, such as ``brokers.host``, and for each a function from value to value. It is
    called for each element if a part of the path is an array. A path may end at a struct: then the function gets and
    returns the struct. The empty path is the whole message. A field that the version does not have is left out, and so
    is a tagged field that the payload does not have.

    If nothing changes, the payload is returned as it came. Bytes after the last changed field are not checked. Raises
    ``DecodeError``, ``EncodeError`` for a value that does not fit, ``UnknownMessageError``,
    ``UnsupportedVersionError``, ``UnknownColumnError`` for a path that no version of the message has, and
    ``OptionError`` for a path within another one.
    """
    data = as_bytes(payload)
    cls: type[Response] = (catalog or release_catalog()).message_class(api_key, "response", version)
    _, start = ResponseHeader.read(data, header_version(cls, version), options=_OPTIONS)
    return _spliced(data, start, cls, version, edits)


def _spliced(data: bytes, start: int, cls: type[Message], version: int, edits: Mapping[str, Edit]) -> bytes:
    for path in edits:
        _check_path(cls, version, path, edits)
    return _Splicer(compile_plan(cls, version), data, start, edits).spliced()


def _check_path(cls: type[Message], version: int, path: str, edits: Mapping[str, Edit]) -> None:
    parts = path.split(".") if path else []
    struct: type[MessageStruct] | None = cls
    for depth, part in enumerate(parts):
        above = ".".join(parts[:depth])
        if above in edits:
            raise OptionError(source="splice", option=path, value=above, reason="this path is already within an edit")
        known = {field.attribute: field for field in fields(struct)} if struct else {}
        if part not in known:
            near = tuple(get_close_matches(part, known))
            raise UnknownColumnError(source=f"{cls.INFO.name} v{version}", column=path, near=near)
        struct = known[part].struct


class _Enough(Exception):  # noqa: N818
    """No field after this one changes."""


class _Splicer(Decoder):
    """Reads a message, and copies its bytes to ``out`` with the changes. ``copied`` is where copying goes on."""

    def __init__(self, plan: Plan, data: bytes, start: int, edits: Mapping[str, Edit]) -> None:
        super().__init__(plan, data, start, _OPTIONS)
        self.whole = data
        self.edits = edits
        self.names: list[str] = []
        self.out: list[bytes] = []
        self.copied = 0
        self.tag_at = 0
        self.last = self.last_field()

    def spliced(self) -> bytes:
        with suppress(_Enough):
            self.edited(self.edits.get(""), Value(Op.STRUCT, struct=self.plan.root), self.message)
        return b"".join((*self.out, self.whole[self.copied :])) if self.out else self.whole

    def last_field(self) -> str | None:
        """Return the last field of the message that has to be read, or None if that is its end."""
        wanted = {path.partition(".")[0] for path in self.edits}
        if "" in wanted or any(step.attribute in wanted for step in self.plan.root.tagged):
            return None
        return next((step.attribute for step in reversed(self.plan.root.steps) if step.attribute in wanted), "")

    def message(self) -> Any:
        if self.last == "":
            raise _Enough
        return super().message()

    def field(self, step: Step) -> Any:
        self.names.append(step.attribute)
        result = super().field(step)
        self.names.pop()
        if not self.names and step.attribute == self.last:
            raise _Enough
        return result

    def value(self, value: Value) -> Any:
        edit = None if value.op is Op.ARRAY else self.edits.get(".".join(self.names))
        return self.edited(edit, value, lambda: super(_Splicer, self).value(value))

    def edited(self, edit: Edit | None, value: Value, read: Callable[[], Any]) -> Any:
        start = self.position
        old = read()
        new = old if edit is None else edit(old)
        if new is not old:
            encoder = Encoder(self.plan, _OPTIONS)
            encoder.path.parts = list(self.path.parts)
            encoder.value(value, new)
            self.replace(start, bytes(encoder.out))
        return old

    def replace(self, start: int, new: bytes) -> None:
        """Write ``new`` in the place of the bytes from ``start`` to here."""
        self.out += (self.whole[self.copied : start], new)
        self.copied = self.position

    def tag_header(self, previous: int) -> tuple[int, int]:
        self.tag_at = self.position
        return super().tag_header(previous)

    def tagged_value(self, step: Step, size: int) -> Any:
        """Read a tagged field. If its content changes, its size changes too."""
        start, outer, copied = self.tag_at, self.out, self.copied
        self.out, self.copied = [], self.position
        result = super().tagged_value(step, size)
        content, changed = b"".join((*self.out, self.whole[self.copied : self.position])), bool(self.out)
        self.out, self.copied = outer, copied
        if changed:
            self.replace(start, write_uvarint(step.tag or 0) + write_uvarint(len(content)) + content)
        return result
