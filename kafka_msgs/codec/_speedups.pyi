from collections.abc import Callable
from typing import Any

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
