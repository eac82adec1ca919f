"""The input files of the tools, by placeholder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.kafka_listeners import USERS

__all__ = ["written_files"]


def _moves(topic: str, *replicas: list[int]) -> dict[str, Any]:
    partitions = [{"topic": topic, "partition": number, "replicas": each} for number, each in enumerate(replicas)]
    return {"version": 1, "partitions": partitions}


def _offsets(topic: str, offset: int) -> dict[str, Any]:
    return {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": offset}]}


_DOCUMENTS: Final[Mapping[str, Any]] = {
    "FILE-records": _offsets("shared", 2),
    "FILE-too-far": _offsets("shared", 1000),
    "FILE-no-topic": _offsets("missing", 1),
    "FILE-election": {"partitions": [{"topic": "plain", "partition": 0}, {"topic": "conf", "partition": 1}]},
    "FILE-topics": {"version": 1, "topics": [{"topic": "move"}]},
    "FILE-moves": _moves("move", [2, 0], [1, 0]),
    "FILE-back": _moves("move", [0, 1], [1, 2]),
    "FILE-no-broker": _moves("move", [0, 7]),
    "FILE-no-partition": _moves("missing", [0, 1]),
}
_TEXTS: Final[Mapping[str, str]] = {
    "FILE-properties": "segment.bytes=2000000\nsegment.ms=7000000\n",
    "FILE-reset": '"readers","plain",0,0\n"readers","plain",1,0\n',
    "LOGIN": (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="alice" password="{USERS["alice"]}";\n'
    ),
}


def written_files(directory: Path) -> dict[str, str]:
    """Write all files, and return their paths by placeholder, long names first."""
    texts = {**{name: json.dumps(document) for name, document in _DOCUMENTS.items()}, **_TEXTS}
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    return {name: str(directory / name) for name in sorted(texts, key=len, reverse=True)}
