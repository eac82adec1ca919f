"""The exceptions of kafka-msgs: what went wrong, as data, and the one place that words it.

Every error carries its facts as attributes, so that a program can act on them, and builds its text from those facts
here. Nothing else in the project formats a position or a path, or shows a value at a length that it decides itself.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BudgetExceededError",
    "CaptureError",
    "ColumnSizeError",
    "ColumnTypeError",
    "CompressionError",
    "CorruptRecordError",
    "CrcMismatchError",
    "DecodeError",
    "DecompressedSizeError",
    "EncodeError",
    "FrameSizeError",
    "InternalError",
    "InvalidKeyTypeError",
    "InvalidLengthError",
    "InvalidTagError",
    "InvalidUtf8Error",
    "InvalidVarintError",
    "JobPathError",
    "JsonFormError",
    "KafkaMsgsError",
    "LogFileError",
    "MissingExtraError",
    "OptionError",
    "RecordError",
    "RecordWriteError",
    "SchemaError",
    "TrailingDataError",
    "TruncatedError",
    "UnexpectedNullError",
    "UnknownColumnError",
    "UnknownMessageError",
    "UnknownNameError",
    "UnknownTopicError",
    "UnsupportedFieldError",
    "UnsupportedMagicError",
    "UnsupportedVersionError",
    "shown",
]


class KafkaMsgsError(Exception):
    """Base of everything this library raises on purpose.

    Subclasses take keyword arguments only; each becomes an attribute. Instances survive pickling, so that a worker
    process can hand its error to the driver whole.
    """

    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)
        super().__init__(self._text())

    def _text(self) -> str:
        raise TypeError(f"{type(self).__name__} is abstract")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.__dict__.copy())


def _rebuild(cls: type[KafkaMsgsError], facts: dict[str, Any]) -> KafkaMsgsError:
    return cls(**facts)


_SHOWN = 100


def shown(value: Any) -> str:
    """Return a value as an error's text shows it: its repr, of at most about 100 characters.

    A number with more digits than Python prints is shown by its type.
    """
    try:
        text = repr(value)
    except ValueError:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class SchemaError(KafkaMsgsError, ValueError):
    """A message definition (or a class made from one) that breaks a rule.

    Attributes: ``source`` (file name or None), ``line`` and ``column`` (from 1, or None), ``path`` (message and field,
    dotted, may be empty), ``rule`` (such as ``"V17"``, or None) and ``reason``.
    """

    reason: str
    source: str | None
    line: int | None
    column: int | None
    path: str
    rule: str | None

    def __init__(
        self,
        reason: str,
        *,
        source: str | None = None,
        line: int | None = None,
        column: int | None = None,
        path: str = "",
        rule: str | None = None,
    ) -> None:
        super().__init__(reason=reason, source=source, line=line, column=column, path=path, rule=rule)

    def _text(self) -> str:
        where = ":".join(str(part) for part in (self.source, self.line, self.column) if part is not None)
        rule = f" [{self.rule}]" if self.rule else ""
        return ": ".join(part for part in (where, self.path, self.reason) if part) + rule

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_schema, (self.__dict__.copy(),)


def _rebuild_schema(facts: dict[str, Any]) -> SchemaError:
    return SchemaError(facts.pop("reason"), **facts)


class UnsupportedVersionError(KafkaMsgsError, ValueError):
    """A version that the message does not have.

    Attributes: ``message`` (name), ``version`` and ``supported`` (a ``VersionRange``).
    """

    message: str
    version: int
    supported: Any

    def _text(self) -> str:
        return f"{self.message} has no version {self.version}; it has {self.supported}"


class UnknownMessageError(KafkaMsgsError, LookupError):
    """An api key that no message has. Attributes: ``api_key``, ``kind`` and ``origin``."""

    api_key: int
    kind: str
    origin: str

    def _text(self) -> str:
        return f"no {self.kind} of {self.origin} has the api key {self.api_key}"


class UnknownNameError(KafkaMsgsError, LookupError):
    """A name that no message of the release has. Attributes: ``name`` and ``near`` (names that look like it)."""

    name: str
    near: tuple[str, ...]

    def _text(self) -> str:
        near = f"; similar: {', '.join(self.near)}" if self.near else ""
        return f"there is no message {shown(self.name)}{near}"


class UnknownTopicError(KafkaMsgsError, LookupError):
    """A topic that is none of Kafka's internal ones. Attribute: ``topic``."""

    topic: str

    def _text(self) -> str:
        return f"{shown(self.topic)} is no internal topic"


class UnknownColumnError(KafkaMsgsError, LookupError):
    """A column that nothing has. Attributes: ``source`` (of what), ``column`` (dotted) and ``near`` (similar names)."""

    source: str
    column: str
    near: tuple[str, ...]

    def _text(self) -> str:
        near = f"; near it are {', '.join(self.near)}" if self.near else ""
        return f"{self.source} has no column {shown(self.column)}{near}"


class ColumnTypeError(KafkaMsgsError, TypeError):
    """A column of a type that cannot hold what it should.

    Attributes: ``column`` (dotted, empty for the whole), ``expected`` and ``found`` (names of Arrow types).
    """

    column: str
    expected: str
    found: str

    def _text(self) -> str:
        column = f"column {self.column}" if self.column else "the column"
        return f"{column} is {shown(self.found)}, expected {shown(self.expected)}"


class ColumnSizeError(KafkaMsgsError, OverflowError):
    """A column whose values do not fit into one array. Attributes: ``rows`` and ``size`` (bytes of the input)."""

    rows: int
    size: int

    def _text(self) -> str:
        return f"the values of {self.rows} rows of {self.size} bytes need more than one array: give them in chunks"


class InvalidKeyTypeError(KafkaMsgsError, ValueError):
    """A coordinator's key that starts with another record type.

    Attributes: ``message`` (name), ``expected`` and ``found`` (record types).
    """

    message: str
    expected: int
    found: int

    def _text(self) -> str:
        return f"{self.message} has the record type {self.expected}, this key has {self.found}"


class MissingExtraError(KafkaMsgsError, ImportError):
    """A feature whose packages are not installed. Attributes: ``feature``, ``extra`` and ``package``."""

    feature: str
    extra: str
    package: str

    def _text(self) -> str:
        return f"{self.feature} needs {self.package}: pip install 'kafka-msgs[{self.extra}]'"


class InternalError(KafkaMsgsError):
    """The library contradicted itself; always a bug worth reporting. Attribute: ``reason``."""

    reason: str

    def _text(self) -> str:
        return f"internal error, please report: {self.reason}"


class EncodeError(KafkaMsgsError, ValueError):
    """A value that cannot be written at this version.

    Attributes: ``message`` (name), ``version`` (None where none is given), ``path`` (such as ``groups[2].topics``,
    empty for the message itself), ``value`` and ``reason``.
    """

    message: str
    version: int | None
    path: str
    value: Any
    reason: str

    def _text(self) -> str:
        version = "" if self.version is None else f" v{self.version}"
        path = f" {self.path}:" if self.path else ""
        return f"{self.message}{version}:{path} {self.reason}"


class UnsupportedFieldError(EncodeError):
    """A field that is set, that this version lacks, and that may not be silently dropped."""


class DecodeError(KafkaMsgsError, ValueError):
    """Bytes that are not this message at this version.

    Attributes: ``message`` (name), ``version`` (None before it is known), ``path`` (such as
    ``groups[2].topics[0].name``), ``offset`` (byte position in the buffer, from 0) and ``reason``.
    """

    message: str
    version: int | None
    path: str
    offset: int
    reason: str

    def _text(self) -> str:
        version = "" if self.version is None else f" v{self.version}"
        path = f" {self.path}" if self.path else ""
        return f"{self.message}{version}:{path} at byte {self.offset}: {self.reason}"


class TruncatedError(DecodeError):
    """The bytes end before the value does."""


class InvalidLengthError(DecodeError):
    """A length or count that is negative or larger than what the bytes left could hold."""


class InvalidVarintError(DecodeError):
    """A variable-length integer of more than five bytes, or of more than 32 bits."""


class InvalidUtf8Error(DecodeError):
    """A string that is not UTF-8."""


class InvalidTagError(DecodeError):
    """A tagged field that is out of order, repeated, not valid at this version, or not of its declared size."""


class UnexpectedNullError(DecodeError):
    """Null where this version does not allow it."""


class TrailingDataError(DecodeError):
    """Bytes left over after a whole message."""


class BudgetExceededError(DecodeError):
    """More elements, bytes or depth than the decode budget allows."""


class FrameSizeError(KafkaMsgsError, ValueError):
    """A frame whose size is negative or beyond the limit. Attributes: ``size`` and ``limit`` in bytes."""

    size: int
    limit: int

    def _text(self) -> str:
        return f"a frame of {self.size} bytes, at most {self.limit} are allowed"


class JsonFormError(KafkaMsgsError, ValueError):
    """A JSON value that is not the JSON form of this message.

    Attributes: ``message`` (name), ``version``, ``path`` (such as ``OffsetFetchRequest.groups[2]``) and ``reason``.
    """

    message: str
    version: int
    path: str
    reason: str

    def _text(self) -> str:
        return f"{self.message} v{self.version}: {self.path}: {self.reason}"


class RecordError(KafkaMsgsError, ValueError):
    """Bytes of a log or of a field of type records that are not record batches.

    Attributes: ``position`` (byte in the buffer where the batch starts, from 0), ``offset`` (the first offset that
    the batch's header states, or None before the header is read) and ``reason``.
    """

    position: int
    offset: int | None
    reason: str

    def _text(self) -> str:
        offset = "" if self.offset is None else f", offset {self.offset}"
        return f"batch at byte {self.position}{offset}: {self.reason}"


class CorruptRecordError(RecordError):
    """A length, count or structure that contradicts the bytes.

    Attributes beside those of ``RecordError``: ``at`` (byte of the fault: in the buffer, or in the decompressed content
    where ``compressed`` says so) and ``index`` (of the record in its batch, or None for the header).
    """

    at: int
    index: int | None
    compressed: bool

    def _text(self) -> str:
        record = "" if self.index is None else f"record {self.index} "
        content = " of the decompressed records" if self.compressed else ""
        return f"{super()._text().removesuffix(self.reason)}{record}at byte {self.at}{content}: {self.reason}"


class CrcMismatchError(RecordError):
    """Bytes that were changed after they were written. Attributes: ``expected`` (stored) and ``found`` (computed)."""

    expected: int
    found: int


class UnsupportedMagicError(RecordError):
    """A record format other than 0, 1 and 2. Attribute: ``magic``."""

    magic: int


class CompressionError(RecordError):
    """Compressed records that do not decompress, or an unknown codec. Attribute: ``codec`` (a name, or a number)."""

    codec: str | int


class DecompressedSizeError(CompressionError):
    """Compressed records that would take more bytes than the caller allows. Attribute: ``limit`` in bytes."""

    limit: int


class LogFileError(KafkaMsgsError, ValueError):
    """A file of a log directory that is damaged in one place.

    Attributes: ``file`` (its path), ``position`` (the byte where the damage starts, from 0), ``skipped`` (how many
    bytes from there could not be read) and ``reason``.
    """

    file: str
    position: int
    skipped: int
    reason: str

    def _text(self) -> str:
        return f"{self.file} at byte {self.position}: {self.reason}"


class CaptureError(KafkaMsgsError, ValueError):
    """Something in a file of captured packets that is damaged or missing.

    Attributes: ``file`` (its path), ``packet`` (its number in the file, from 1, or None) and ``reason``.
    """

    file: str
    packet: int | None
    reason: str

    def _text(self) -> str:
        return f"{self.file}: {self.reason}"


class OptionError(KafkaMsgsError, ValueError):
    """An option of a data source that does not hold. Attributes: ``source``, ``option``, ``value`` and ``reason``."""

    source: str
    option: str
    value: str | None
    reason: str

    def _text(self) -> str:
        given = "" if self.value is None else f" {shown(self.value)}"
        return f"{self.source}: option {self.option}{given}: {self.reason}"


class RecordWriteError(KafkaMsgsError, ValueError):
    """A record or a batch that the format cannot hold. Attributes: ``field``, ``value`` and ``reason``."""

    field: str
    value: Any
    reason: str

    def _text(self) -> str:
        return f"{self.field}: {self.reason}"


class JobPathError(KafkaMsgsError, ValueError):
    """A path that a job cannot read from, or must not write to. Attributes: ``path`` and ``reason``."""

    path: str
    reason: str

    def _text(self) -> str:
        return f"{self.path}: {self.reason}"
