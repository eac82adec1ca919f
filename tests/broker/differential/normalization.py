"""Replaces values that a cluster generated with symbols, and back: ids, brokers, addresses, times and script names.

The tables list the fields of each kind. All other fields are compared unchanged.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Container, Mapping
from fnmatch import fnmatch
from functools import cache
from typing import Any, Final

from attrs import Factory, define

from tests.broker.differential.known_differences import OTHERS, PLACED_BY_KAFKA, UNORDERED
from tests.broker.differential.records import batches, shown

__all__ = ["IDS", "NODES", "PLACES", "TIMES", "Plain", "is_unordered", "without"]

IDS: Final[Mapping[str, str]] = {
    "topicId": "topicId",
    "memberId": "memberId",
    "JoinGroup.leader": "memberId",
    "producerId": "producerId",
    "Fetch.sessionId": "sessionId",
    "clusterId": "clusterId",
    "replicaDirectoryId": "directory",
    "tokenId": "tokenId",
    "hmac": "hmac",
}
"""The fields with generated values, and their kind of symbol. Zero, -1 and an empty string are kept."""
NODES: Final = frozenset(
    {"brokerId", "controllerId", "isrNodes", "leaderId", "nodeId", "offlineReplicas", "replicaId", "replicaNodes"}
    | {"replicas", "addingReplicas", "removingReplicas", "lastKnownElr", "eligibleLeaderReplicas"}
)
"""The fields with broker ids. The first broker becomes 0."""
PLACES: Final = frozenset({"host", "port", "logDir", "directoryId", "rack"})
"""The fields with addresses, directories and racks, which differ in every cluster."""
TIMES: Final = frozenset(
    {"timestamp", "lastTimestamp", "logAppendTimeMs", "transactionStartTimeMs", "issueTimestampMs"}
    | {"baseTimestamp", "maxTimestamp", "expiryTimestampMs", "maxTimestampMs", "lastFetchTimestamp"}
    | {"lastCaughtUpTimestamp", "sessionLifetimeMs"}
)
"""The fields with times. A time near the present becomes ``<now>``."""
_NEAR_MS: Final = 3_600_000
_MADE_UP: Final = frozenset({*IDS, "errorMessage"})
"""The fields that differ, or may differ, between clusters."""
_NOTHING: Final = (None, "", 0, -1, "AAAAAAAAAAAAAAAAAAAAAA")
_SYMBOL: Final = re.compile(r"<(\w+) (-?\d+)>")
_GIVEN_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""The suffix that a coordinator appends to the name of a client or of an instance."""
_PRODUCER: Final = re.compile(r"((?:producerId|producer id) ?[:=]? ?)(\d+)", re.IGNORECASE)
_IN_TEXTS: Final = ("topicId", "memberId")
_LAST: Final[Mapping[str, str]] = {"lastId": "producerId", "lastEpoch": "producerEpoch"}
"""Symbols for the producer of the latest response that contains one, for clients that continue with it."""
_UNKNOWN_ID: Final = b64encode(bytes(15) + b"\7").decode().rstrip("=").replace("/", "_").replace("+", "-")
_BROKERS: Final = 3
_UNKNOWN_NUMBERS: Final[Mapping[str, range]] = {
    "producerId": range(2**60, 2**60 + 1000),
    "sessionId": range(2**30, 2**30 + 1000),
}
"""Numbers for symbols that no response has shown yet. Clusters generate few or none of them, and may echo them."""


@define
class Plain:
    """The symbols of one script on one cluster. ``now`` is the start of the script in milliseconds."""

    prefix: str
    first_node: int
    now: int
    values: dict[str, list[Any]] = Factory(dict)
    last: Mapping[str, int] = Factory(dict)

    def resolved(self, value: Any) -> Any:
        """Return a part of a command with this cluster's values; records become Base64."""
        if isinstance(value, dict):
            if "values" in value and "timestamp" in value:
                return self._records(value)
            return {name: self.resolved(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.resolved(each) for each in value]
        return self._resolved_text(value) if isinstance(value, str) else value

    def _records(self, spec: dict[str, Any]) -> str:
        plain = {name: self.resolved(each) for name, each in spec.items() if name != "values"}
        plain["timestamp"] = plain["timestamp"] if plain["timestamp"] > 0 else self.now + plain["timestamp"]
        return b64encode(batches({**plain, "values": spec["values"]})).decode()

    def _resolved_text(self, text: str) -> Any:
        whole = _SYMBOL.fullmatch(text)
        if whole is not None and whole[1] in (*_UNKNOWN_NUMBERS, *_LAST, "node"):
            return self._value(whole[1], int(whole[2]))
        return _SYMBOL.sub(lambda match: str(self._value(match[1], int(match[2]))), text).replace("<p>", self.prefix)

    def _value(self, kind: str, number: int) -> Any:
        if kind in ("node", "broker"):
            return self.first_node + number
        if kind in _LAST:
            return self.last.get(kind, 0)
        known = self.values.get(kind, [])
        if 0 <= number < len(known):
            return known[number]
        if kind in _UNKNOWN_NUMBERS:
            return _UNKNOWN_NUMBERS[kind][number]
        return f"{_UNKNOWN_ID[:-2]}g{'ABCDEFGH'[number % 8]}"[:22] if kind == "topicId" else f"{kind}-{number}"

    def shown(self, api: str, value: Any, asked: str, path: str = "", name: str = "") -> Any:
        """Return a part of a response with symbols instead of this cluster's values.

        Unordered lists are sorted, and items that neither the script nor the request (``asked``) names are omitted.
        """
        if isinstance(value, dict):
            return {key: self.shown(api, each, asked, f"{path}.{key}", key) for key, each in value.items()}
        if isinstance(value, list):
            found = [each for each in value if self._is_own(f"{api}{path}", each, asked)]
            if is_unordered(f"{api}{path}"):
                found.sort(key=lambda each: without(each, _MADE_UP))
            return [self.shown(api, each, asked, path, name) for each in found]
        if name == "records" and isinstance(value, str):
            return self.shown(api, shown(b64decode(value)), asked, path)
        kind = IDS.get(f"{api}.{name}", IDS.get(name))
        if kind is not None:
            return self._symbol(kind, value)
        if name in NODES:
            return value - self.first_node if isinstance(value, int) and value >= 0 else value
        if name == "resourceName" and value in map(str, range(self.first_node, self.first_node + _BROKERS)):
            return f"<broker {int(value) - self.first_node}>"
        if name in PLACES:
            return value if value in _NOTHING else f"<{name}>"
        if name in TIMES and isinstance(value, int):
            return "<now>" if abs(value - self.now) < _NEAR_MS else value
        return self._shown_text(value) if isinstance(value, str) else value

    def note_producer(self, answer: Mapping[str, Any]) -> None:
        """Record the producer of a response, if it has one."""
        if answer.get("producerEpoch", -1) >= 0:
            self.last = {kind: answer[field] for kind, field in _LAST.items()}

    def _is_own(self, path: str, element: Any, asked: str) -> bool:
        key = OTHERS.get(path)
        if key is not None and str(element[key]).startswith(PLACED_BY_KAFKA.replace("<p>", self.prefix)):
            return False
        return key is None or self.prefix in str(element[key]) or f"'{element[key]}'" in asked

    def _symbol(self, kind: str, value: Any) -> Any:
        if value in _NOTHING:
            return value
        if isinstance(value, str) and value.startswith(self.prefix) and _GIVEN_ID.search(value) is None:
            return value.replace(self.prefix, "<p>")
        if value in _UNKNOWN_NUMBERS.get(kind, ()) or str(value).startswith(_UNKNOWN_ID[:-2]):
            return f"<unknown {kind}>"
        known = self.values.setdefault(kind, [])
        if value not in known:
            known.append(value)
        return f"<{kind} {known.index(value)}>"

    def _shown_text(self, text: str) -> str:
        for kind in _IN_TEXTS:
            for number, value in enumerate(self.values.get(kind, ())):
                text = text.replace(value, f"<{kind} {number}>")
        text = _PRODUCER.sub(lambda match: match[1] + str(self._symbol("producerId", int(match[2]))), text)
        return text.replace(self.prefix, "<p>")


@cache
def is_unordered(path: str) -> bool:
    """Return whether a list is unordered; ``path`` is the API name followed by the path of the field."""
    return any(fnmatch(path, each) for each in UNORDERED)


def without(value: Any, names: Container[str]) -> str:
    """Return a sort key for list items that is equal on both clusters, without the fields that may differ."""
    if isinstance(value, dict):
        return str([without(each, names) for name, each in value.items() if name not in names])
    return str([without(each, names) for each in value]) if isinstance(value, list) else str(value)
