"""A cluster as one side of the comparison: routing and sending of commands, and normalization of responses."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from attrs import Factory, define

from kafka_msgs import (
    ApiVersionsRequest,
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
)
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.message import Request
from kafka_msgs.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequestGroup
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.wire import decode_response, encode_request, request_needs_response
from tests.broker.differential.connection import ClosedError, Connection, SilenceError
from tests.broker.differential.normalization import Plain
from tests.coordinator.request_bodies import request_class

__all__ = ["Command", "Result", "Side"]

Command: TypeAlias = dict[str, Any]
"""``api``, ``version``, ``body`` in JSON form and ``to``; or ``raw`` bytes as hexadecimal text. ``on`` names a user."""
Result: TypeAlias = dict[str, Any]
"""``answer`` in JSON form, ``closed``, ``alive`` (for requests without a response), or ``silent``."""

CLIENT_ID: Final = "differential"
_NUMBER: Final = 7
_COORDINATORS: Final = {"group": 0, "transaction": 1, "share": 2}
_FOUND_PATIENCE: Final = 200


@define
class Side:
    """A running cluster. ``nodes`` contains addresses by id and listener; ``users`` maps user names to passwords."""

    name: str
    nodes: Mapping[int, Mapping[str, tuple[str, int]]]
    users: Mapping[str, str]
    plain: Plain = Factory(lambda: Plain("", 0, 0))
    _open: dict[tuple[int, str], Connection] = Factory(dict)
    _own: dict[int, Connection] = Factory(dict)

    def begin(self, prefix: str, now: int) -> None:
        """Start a script with a prefix for its names and without known symbols."""
        self.plain = Plain(prefix, min(self.nodes), now)
        self.hang_up()

    def hang_up(self) -> None:
        """Close all connections of the script."""
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def close(self) -> None:
        """Close all connections."""
        self.hang_up()
        for connection in self._own.values():
            connection.close()
        self._own.clear()

    def run(self, command: Command) -> Result:
        """Send a command, and return its result with symbols."""
        node = self._node(command.get("to", ["node", 0]))
        key = (node, command.get("on", "main"))
        try:
            connection = self._connection(*key)
            return self._sent(connection, command)
        except (ClosedError, SilenceError) as end:
            if key in self._open:
                self._open.pop(key).close()
            return {"closed": True} if isinstance(end, ClosedError) else {"silent": True}

    def ask(self, request: Request[Any], version: int, node: int | None = None) -> Any:
        """Send a request on one of the campaign's own connections, and return the decoded response."""
        node = min(self.nodes) if node is None else node
        if node not in self._own:
            self._own[node] = Connection(self.nodes[node]["PLAINTEXT"])
        connection = self._own[node]
        connection.send(encode_request(request, version, correlation_id=1, client_id=CLIENT_ID))
        return decode_response(connection.receive(), request.INFO.api_key or 0, version).message

    def leader(self, topic: str, partition: int) -> int | None:
        """Return the broker that leads a partition, or None."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
        for found in self.ask(request, 12).topics:
            for each in found.partitions:
                if each.partition_index == partition and each.leader_id >= 0:
                    return int(each.leader_id)
        return None

    def coordinator(self, kind: str, key: str) -> int | None:
        """Return the coordinator of a group or a transactional id, or None if there is none."""
        request = FindCoordinatorRequest(key_type=_COORDINATORS[kind], coordinator_keys=(key,))
        for _ in range(_FOUND_PATIENCE):
            (found,) = self.ask(request, 4).coordinators
            if found.error_code == 0:
                return int(found.node_id)
            if found.error_code not in (14, 15):
                break
            time.sleep(0.05)
        return None

    def share_partitions(self, group: str) -> set[tuple[str, int]]:
        """Return the partitions for which a share group has state, with topic names in script form."""
        asked = DescribeShareGroupOffsetsRequestGroup(group_id=str(self.plain.resolved(group)), topics=None)
        request = DescribeShareGroupOffsetsRequest(groups=(asked,))
        answer = self.ask(request, 0, self._node(["group", group]))
        return {
            (topic.topic_name.replace(self.plain.prefix, "<p>"), each.partition_index)
            for found in answer.groups
            for topic in found.topics
            for each in topic.partitions
        }

    def _connection(self, node: int, name: str) -> Connection:
        if (node, name) not in self._open:
            user = (name, self.users[name]) if name in self.users else None
            listener = "SASL_PLAINTEXT" if user else "PLAINTEXT"
            self._open[node, name] = Connection(self.nodes[node][listener], user)
        return self._open[node, name]

    def _node(self, to: list[Any]) -> int:
        first = min(self.nodes)
        kind, *rest = to
        if kind == "node":
            return first + int(rest[0])
        key = str(self.plain.resolved(rest[0]))
        found = self.leader(key, rest[1]) if kind in ("leader", "follower") else self.coordinator(kind.split()[-1], key)
        found = first if found is None else found
        if kind.startswith(("not", "follower")):
            return first + (found - first + 1) % len(self.nodes)
        return found

    def _sent(self, connection: Connection, command: Command) -> Result:
        if "raw" in command:
            return self._raw(connection, command)
        api, version = command["api"], command["version"]
        request = request_class(api).from_json(self.plain.resolved(command["body"]), version)
        payload = encode_request(request, version, correlation_id=_NUMBER, client_id=CLIENT_ID)
        kind, what = command.get("damage", ("none", 0))
        connection.send(
            payload[:-what] if kind == "cut" else payload + bytes.fromhex(what) if kind == "more" else payload
        )
        if not request_needs_response(request):
            return self._alive(connection)
        return self._read(connection.receive(), request.INFO.api_key or 0, version, api, str(command["body"]))

    def _raw(self, connection: Connection, command: Command) -> Result:
        connection.send(bytes.fromhex(command["raw"]), size=command.get("size"))
        return self._read(connection.receive(), command["key"], command["version"], "raw")

    def _read(self, payload: bytes, key: int, version: int, api: str, asked: str = "") -> Result:
        try:
            frame = decode_response(payload, key, version)
        except KafkaMsgsError:
            return {"bytes": payload.hex()}
        content = frame.message.to_json(version)
        self.plain.note_producer(content)
        answer = {"correlation": frame.header.correlation_id} if frame.header.correlation_id != _NUMBER else {}
        return answer | {"answer": self.plain.shown(api, content, self.plain.resolved(asked))}

    def _alive(self, connection: Connection) -> Result:
        """Check that the connection still responds after a request without a response."""
        connection.send(encode_request(ApiVersionsRequest(), 0, correlation_id=_NUMBER, client_id=CLIENT_ID))
        connection.receive()
        return {"alive": True}
