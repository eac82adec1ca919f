from collections.abc import Callable
from typing import Any

class Program:
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
        self, valid: Any, offsets: Any, data: Any, offset: int, count: int, wide: bool, /
    ) -> tuple[int, list[int], list[tuple[int, int, Any, Any, Any, int]]]: ...

class RecordColumns:
    def __init__(self, names: tuple[str, ...], allocate: Callable[[int], Any], /) -> None: ...
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
    def finish(self) -> list[tuple[int, int, Any, Any, Any, int]]: ...
