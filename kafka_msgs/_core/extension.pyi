from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

from kafka_msgs.log.mapped_file import Mapped
from kafka_msgs.records.record import ConsumerRecord, Payload, Record

V = TypeVar("V")

# values.c

class Layout:
    def __new__(cls, sealed: type[Any], fields: tuple[tuple[str, Any], ...], temporary: bool = False, /) -> Self: ...

def evolve(value: V, /, **changes: Any) -> V: ...

# methods.c

class Method:
    def __new__(cls, function: Callable[..., Any], verb: int, names: tuple[str | None, ...], /) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

# codec.c

class Codec:
    def __init__(
        self,
        structs: tuple[Any, ...],
        elements: int,
        room: int,
        too_deep: bool,
        views: bool,
        errors: str | None,
        encode_failure: Callable[..., BaseException],
        decode_failure: Callable[..., BaseException],
        trailing_data: Callable[..., BaseException],
        /,
    ) -> None: ...
    def encode(self, message: Any, /) -> bytes: ...
    def decode(self, data: Any, offset: int = 0, /) -> Any: ...
    def read(self, buffer: Any, offset: int = 0) -> tuple[Any, int]: ...
    def patch(self, data: Any, offset: int, edits: tuple[Callable[[Any], Any], ...], /) -> bytes: ...

def view_source(view: object, /) -> tuple[bytes, int] | None: ...

# records.c

class RecordStorage: ...
class PlacedRecordStorage(RecordStorage): ...

class RecordAppender:
    def __new__(
        cls, base_offset: int, highest_offset: int, base_timestamp: int | None, room: int | None, /
    ) -> RecordAppender: ...
    @property
    def size(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def highest_offset(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    def append(
        self,
        key: Payload | None,
        value: Payload | None,
        *,
        timestamp: int = -1,
        headers: Iterable[tuple[str, Payload | None]] = (),
        offset: int | None = None,
    ) -> bool: ...
    def append_rows(
        self,
        start: int,
        stop: int,
        timestamp: int,
        key_offsets: Any,
        key_data: Any,
        key_valid: Any,
        key_first: int,
        value_offsets: Any,
        value_data: Any,
        value_valid: Any,
        value_first: int,
        times: Any,
        first_time: int,
        /,
    ) -> int: ...
    def sealed(self, head: bytes, /) -> bytes: ...

def read_records(
    part: int,
    body: bytes,
    at: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_timestamp: int | None,
    views: bool,
    topic: str | None = None,
    partition: int | None = None,
    /,
) -> list[Any] | None: ...
def records_exceed(body: bytes, at: int, end: int, count: int, limit: int, /) -> bool: ...

class DeliveryStorage:
    _batch: Any
    _index: int
    _timestamp: int

    def __new__(cls, batch: Any, index: int, timestamp: int, /) -> Self: ...

def murmur2(key: Payload, /) -> int: ...
def bind_records(
    record_type: type[Record], placed_type: type[ConsumerRecord], checked: Callable[..., Any], /
) -> None: ...

# columns.c

class ColumnProgram:
    def __init__(
        self,
        columns: tuple[Any, ...],
        structs: tuple[Any, ...],
        forms: tuple[Any, ...],
        prefixed: bool,
        elements: int,
        room: int,
        allocate: Callable[[int], Any],
        /,
    ) -> None: ...
    def decode(
        self, column: tuple[Any], first: int, count: int, /
    ) -> tuple[list[tuple[int, int, Any, Any, Any, int]], list[tuple[int, int, Any, Any, Any, int]]]: ...
    def encode(
        self, columns: tuple[Any, ...], first: int, count: int, numbers: Any, prefix: bool, /
    ) -> list[tuple[int, int, Any, Any, Any, int]]: ...

class RecordColumns:
    rows: int
    size: int

    def __init__(self, numbers: tuple[int, ...], allocate: Callable[[int], Any], unread: bool, /) -> None: ...
    def append(
        self,
        data: Any,
        at: int,
        end: int,
        shift: int,
        elements: int,
        rows: int,
        size: int,
        unpack: Callable[[int, memoryview], bytes | None],
        /,
    ) -> int: ...
    def finish(self) -> list[tuple[int, int, Any, Any, Any, int]]: ...

# log.c

def count_batches(
    data: Mapped,
    position: int,
    stop: int,
    checksum: Callable[[Any], int] | None,
    without: int = 0,
    first: int = ...,
    last: int = ...,
    /,
) -> tuple[Any, ...]: ...
