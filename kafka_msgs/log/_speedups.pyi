from collections.abc import Callable
from typing import Any

from kafka_msgs.log.resync import Mapped

def count(data: Mapped, position: int, stop: int, checksum: Callable[[Any], int] | None, /) -> tuple[Any, ...]: ...
