"""kafka-msgs as a peer of ``languages``, in a separate process like the other languages.

``python -m benchmarks.languages_ours DIRECTORY`` is such a process; ``languages`` describes the commands.
"""

from __future__ import annotations

import gc
import sys
import time
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Final

import kafka_msgs
from benchmarks.timing import Action

__all__: list[str] = []

_SWEPT: Final = 64 << 20


def main(directory: Path) -> None:
    """Respond until the input ends."""
    actions = {file.name: _actions(file) for file in directory.iterdir()}
    print(*actions, flush=True)
    other = b"\1" * _SWEPT
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        caches, direction, name, calls = line.split()
        if caches == "cold":
            other.count(0)
        print(_timed(actions[name][direction], int(calls)), flush=True)


def _actions(file: Path) -> dict[str, Action]:
    message, _, version = file.name.partition(".")
    codec, data = kafka_msgs.codec_for(getattr(kafka_msgs, message), int(version)), file.read_bytes()
    decoded = codec.decode(data)
    if codec.encode(decoded) != data:
        raise ValueError(f"{file.name}: kafka-msgs writes other bytes")
    return {"decode": partial(codec.decode, data), "encode": partial(codec.encode, decoded)}


def _timed(action: Action, calls: int) -> int:
    start = time.perf_counter_ns()
    for _ in repeat(None, calls):
        action()
    return time.perf_counter_ns() - start


if __name__ == "__main__":
    main(Path(sys.argv[1]))
