from typing import Any

class Buffer:
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Program:
    def __init__(
        self,
        columns: tuple[Any, ...],
        structs: tuple[Any, ...],
        forms: tuple[Any, ...],
        prefixed: bool,
        elements: int,
        room: int,
        /,
    ) -> None: ...
    def decode(
        self, valid: Any, offsets: Any, data: Any, offset: int, count: int, wide: bool, /
    ) -> tuple[int, list[int], list[tuple[int, int, Buffer | None, Buffer | None, Buffer | None]]]: ...

class RecordColumns:
    def __init__(self, names: tuple[str, ...], /) -> None: ...
    def append(
        self,
        body: Any,
        at: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_timestamp: int | None,
        /,
    ) -> bool: ...
    def finish(self) -> list[tuple[int, int, Buffer | None, Buffer | None, Buffer | None]]: ...
