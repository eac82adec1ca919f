from collections.abc import Callable, Iterable
from typing import Any

from kafka_msgs.records.record import Payload, Record
from kafka_msgs.records.storage import _Slots

class Storage(_Slots): ...

class Collector:
    def __new__(
        cls, base_offset: int, highest_offset: int, base_timestamp: int | None, room: int | None, /
    ) -> Collector: ...
    @property
    def records(self) -> memoryview: ...
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
    def sealed(self, head: bytes, /) -> bytes: ...

def read(
    part: int,
    body: bytes,
    at: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_timestamp: int | None,
    views: bool,
    /,
) -> list[Any] | None: ...
def bind(record_type: type[Record], checked: Callable[..., Any], /) -> None: ...
