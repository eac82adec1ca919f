"""Runs a script of the oracle on our coordinator: ``python -m tests.coordinator.player < script.jsonl``.

It reads the commands listed in ``CoordinatorOracle.java``, and prints the same lines as the oracle: one JSON object per
line, with messages in Kafka's JSON form. Tests use ``Player`` for the same purpose.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final
from uuid import UUID

from attrs import evolve

import kafka_msgs
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.compat.quirks import Quirks
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.coordinator import GroupCoordinator
from kafka_msgs.groups.group_protocol import TopicChange
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.memory_log import MemoryLog
from kafka_msgs.groups.runtime.output import (
    BackgroundTask,
    CoordinatorOutput,
    MarkerAppend,
    ProducerIdAndEpoch,
    RecordAppend,
    Reply,
)
from kafka_msgs.groups.runtime.uncommitted_changes import UncommittedChanges
from kafka_msgs.groups.streams.description_plugin import (
    DescriptionFailure,
    InMemoryDescriptions,
    PluginError,
)
from kafka_msgs.groups.topics_image import CoordinatorTopicImage
from kafka_msgs.internal_topics.records import TopicRecord, encode_record
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.create_topics_request import CreateTopicsRequest
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.streams_group_topology_description_update_request import TopologyDescription
from tests.coordinator.kafka_changes import KafkaUncommittedChanges
from tests.coordinator.oracle import Command, Result

__all__ = ["Player", "play"]

_PLUGIN: Final = "group.streams.topology.description.plugin.class"
_NULL_PROTOCOL_FROM: Final = 7
_CREATE_TOPICS_VERSION: Final = CreateTopicsRequest.INFO.versions.highest


class Player:
    """A coordinator that runs the oracle's commands; each ``start`` creates a new one.

    Without ``quirks`` the coordinator has the quirks of the release, and Kafka's order of tables.
    """

    def __init__(self, quirks: Quirks | None = None) -> None:
        self._quirks = quirks or Quirks.from_release()
        self._new_changes = KafkaUncommittedChanges if quirks is None else UncommittedChanges
        self._session: _Session | None = None

    @property
    def coordinator(self) -> GroupCoordinator:
        """The coordinator of the current session."""
        return self._started().coordinator

    @property
    def log(self) -> MemoryLog:
        """The log of the current session."""
        return self._started().log

    def _started(self) -> _Session:
        assert self._session is not None, "a script begins with start"
        return self._session

    def do(self, command: Command) -> Result:
        """Run a command and return its result. An invalid command returns a result with ``error``."""
        try:
            if command["op"] == "start":
                self._session = _Session(command, self._quirks, self._new_changes)
            return self._started().do(command)
        except Exception as error:
            return {"error": repr(error)}


def play(commands: Iterable[Command], quirks: Quirks | None = None) -> list[Result]:
    """Return the results of a script."""
    player = Player(quirks)
    return [player.do(command) for command in commands]


class _Descriptions(InMemoryDescriptions):
    """The oracle's plugin: the call after ``fail-plugin`` fails."""

    def __init__(self) -> None:
        super().__init__()
        self.fail_next: DescriptionFailure | None = None

    def set_topology(self, group_id: str, epoch: int, description: TopologyDescription) -> None:
        self._fail()
        super().set_topology(group_id, epoch, description)

    def get_topology(self, group_id: str, epoch: int) -> TopologyDescription | None:
        self._fail()
        return super().get_topology(group_id, epoch)

    def delete_topology(self, group_id: str) -> None:
        self._fail()
        super().delete_topology(group_id)

    def _fail(self) -> None:
        failure, self.fail_next = self.fail_next, None
        if failure is not None:
            raise PluginError("no, never" if failure is DescriptionFailure.PERMANENT else "not now", failure)


class _Session:
    """The state from one ``start`` to the next."""

    def __init__(self, command: Command, quirks: Quirks, new_changes: Callable[[], UncommittedChanges]) -> None:
        self.now: int = command.get("now", 0)
        self.show_bytes: bool = command.get("bytes", False)
        config = {name: str(value) for name, value in command.get("config", {}).items()}
        self.descriptions = _Descriptions()
        plugin = self.descriptions if config.pop(_PLUGIN, None) else None
        self.log = MemoryLog()
        self.ids = 0
        self.coordinator = GroupCoordinator(
            self.log.append,
            config=CoordinatorConfig.parse(config),
            quirks=quirks,
            new_id=self._new_id,
            plugin=plugin,
            random=lambda: 0.5,
            new_changes=new_changes,
        )
        self.log.on_commit = self.coordinator.committed
        self.brokers: dict[int, str | None] = {}
        self.replicas: dict[str, list[tuple[int, ...]]] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.batches = 0
        self.held = False
        self.work: deque[BackgroundTask] = deque()
        self.result: Result = {}

    def _new_id(self) -> str:
        self.ids += 1
        return f"00000000-0000-4000-8000-{self.ids:012x}"

    def do(self, command: Command) -> Result:
        op: str = command["op"]
        self.result = {"op": op}
        getattr(self, "_do_" + op.replace("-", "_"))(command)
        self._settle()
        self.result["now"] = self.now
        if op == "timers" and (pending := self.coordinator.pending_timers()):
            self.result["pending"] = [list(timer) for timer in pending]
        if self.work:
            self.result["waiting"] = len(self.work)
        return self.result

    def _settle(self) -> None:
        """Run background work and due timers until none are left."""
        self._run_work()
        while (due := self.coordinator.next_timer) is not None and due <= self.now:
            self._take(self.coordinator.tick(due))
            self._run_work()

    def _run_work(self) -> None:
        while self.work and not self.held:
            work = self.work.popleft()
            self.result["background"] = self.result.get("background", 0) + 1
            value, error = None, None
            try:
                value = work.run()
            except Exception as raised:
                error = raised
            self._take(self.coordinator.complete_background_task(work, value, error, now=self.now))

    # Commands

    def _do_start(self, command: Command) -> None:
        for partition in range(self.coordinator.config.offsets_topic_num_partitions):
            self._elect(partition, 1)

    def _do_elect(self, command: Command) -> None:
        self._elect(command["partition"], command["epoch"])

    def _elect(self, partition: int, epoch: int) -> None:
        if self.coordinator.elect(partition, epoch, now=self.now):
            records = self.log.records(partition)
            try:
                self.coordinator.load(partition, records)
            except GroupError:
                self._take(self.coordinator.load_failed(partition, now=self.now))
            else:
                self._take(self.coordinator.loaded(partition, now=self.now))

    def _do_resign(self, command: Command) -> None:
        self._take(self.coordinator.resign(command["partition"], command["epoch"], now=self.now))

    def _do_request(self, command: Command) -> None:
        cls: type[Request[Any]] = getattr(kafka_msgs, f"{command['api']}Request")
        version = command.get("version", cls.INFO.versions.highest)
        context = RequestContext(
            version=version,
            client_id=command.get("client", "client"),
            client_host="localhost/127.0.0.1",
            principal=f"User:{command.get('user', 'ANONYMOUS')}",
        )
        token = (command.get("as", command["api"]), version)
        request = cls.from_json(command["body"], version)
        self._take(self.coordinator.handle(request, context, now=self.now, opaque=token))

    def _do_advance(self, command: Command) -> None:
        target = self.now + command["ms"]
        while (due := self.coordinator.next_timer) is not None and due <= target:
            self.now = max(self.now, due)
            self._take(self.coordinator.tick(due))
            self._run_work()
        self.now = target

    def _do_topics(self, command: Command) -> None:
        before = self.coordinator.image
        self.brokers.update((each["id"], each.get("rack")) for each in command.get("brokers", ()))
        created, changed = [], []
        for each in command.get("create", ()):
            name = each["name"]
            self.topic_ids[name] = _uuid(each["id"]) if "id" in each else _id_of(name)
            self.replicas[name] = [tuple(each.get("replicas") or (0,))] * each["partitions"]
            created.append(name)
        for each in command.get("grow", ()):
            old = self.replicas[each["name"]]
            more = each["partitions"] - len(old)
            self.replicas[each["name"]] = old + [tuple(each.get("replicas") or (0,))] * more
            if more > 0:
                changed.append(each["name"])
        for name in command.get("delete", ()):
            del self.replicas[name]
        after = before.changed(put=[self._topic(name) for name in self.replicas], delete=command.get("delete", ()))
        change = TopicChange(before, after, tuple(created), tuple(changed), tuple(command.get("delete", ())))
        self._take(self.coordinator.change_image(change, now=self.now))

    def _topic(self, name: str) -> CoordinatorTopicImage:
        racks = tuple(
            tuple(rack for replica in replicas if (rack := self.brokers.get(replica)) is not None)
            for replicas in self.replicas[name]
        )
        return CoordinatorTopicImage(name=name, id=self.topic_ids[name], racks=racks)

    def _do_group_config(self, command: Command) -> None:
        own = {name: str(value) for name, value in command["config"].items()}
        self.coordinator.update_group_config(command["group"], own)

    def _do_end_txn(self, command: Command) -> None:
        producer = ProducerIdAndEpoch(command["producer"], command["epoch"])
        partition = command.get("partition", 0)
        outcome = self.coordinator.end_transaction(partition, producer, command["commit"], now=self.now, opaque=None)
        self._take(outcome)

    def _do_fail_append(self, command: Command) -> None:
        self.log.fail_next = GroupError(error=ErrorCode[command["error"]])

    def _do_fail_plugin(self, command: Command) -> None:
        self.descriptions.fail_next = DescriptionFailure(command["kind"])

    def _do_hold(self, command: Command) -> None:
        self.log.hold = command.get("commits", self.log.hold)
        self.held = command.get("background", self.held)

    def _do_commit(self, command: Command) -> None:
        self.log.commit()
        self._take(self.coordinator.tick(self.now))

    def _do_background(self, command: Command) -> None:
        held, self.held = self.held, False
        self._run_work()
        self.held = held

    def _do_timers(self, command: Command) -> None:
        """Do nothing here: ``do`` adds the timers to the result."""

    # Results

    def _take(self, outcome: CoordinatorOutput) -> None:
        """Add an output of the coordinator to the result."""
        self.work.extend(outcome.background)
        answers = [_answer(answer) for answer in outcome.answers if answer.opaque is not None]
        records = [record for batch in outcome.batches for record in self._batch(batch)]
        self._add("answers", answers)
        self._add("records", records)
        self._add("scheduled", [list(timer) for timer in outcome.scheduled])
        self._add("expired", [list(timer) for timer in outcome.expired])
        self._add("plugin", outcome.plugin)

    def _add(self, name: str, items: list[Any]) -> None:
        if items:
            self.result.setdefault(name, []).extend(items)

    def _batch(self, batch: RecordAppend | MarkerAppend) -> list[dict[str, Any]]:
        number, self.batches = self.batches, self.batches + 1
        head: dict[str, Any] = {"batch": number}
        if batch.partition:
            head["partition"] = batch.partition
        if batch.producer_id >= 0:
            head |= {"producer": batch.producer_id, "epoch": batch.producer_epoch}
        if isinstance(batch, MarkerAppend):
            return [head | {"marker": "COMMIT" if batch.committed else "ABORT"}]
        return [head | self._bytes(record) | _record(record) for record in batch.records]

    def _bytes(self, record: TopicRecord) -> dict[str, Any]:
        if not self.show_bytes:
            return {}
        key, value = (part if part is None else b64encode(part).decode() for part in encode_record(record))
        return {"keyBytes": key, "valueBytes": value}


def _record(record: TopicRecord) -> dict[str, Any]:
    assert record.key is not None
    shown = {"type": record.key.INFO.name.removesuffix("Key"), "key": record.key.to_json(0)}
    if record.value is None or record.version is None:
        return shown | {"value": None}
    return shown | {"version": record.version, "value": record.value.to_json(record.version)}


def _answer(answer: Reply) -> dict[str, Any]:
    name, version = answer.opaque
    response: Response = answer.response
    shown = {"to": name, "body": _body(response, version)}
    if answer.topics_to_create:
        creates = CreateTopicsRequest(topics=answer.topics_to_create).to_json(_CREATE_TOPICS_VERSION)
        shown["creates"] = creates["topics"]
    return shown


def _body(response: Response, version: int) -> dict[str, Any]:
    """Return the JSON form of a response. Like Kafka's converter, always write a null protocol name."""
    if isinstance(response, JoinGroupResponse) and response.protocol_name is None and version < _NULL_PROTOCOL_FROM:
        return evolve(response, protocol_name="").to_json(version) | {"protocolName": None}
    return response.to_json(version)


def _uuid(text: str) -> UUID:
    """Return the id that Kafka writes as 22 characters of base64."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def _id_of(name: str) -> UUID:
    return UUID(bytes=hashlib.sha256(name.encode()).digest()[:16])


def main() -> None:
    """Read commands from standard input and print the result of each."""
    player = Player()
    for line in sys.stdin:
        if line.strip() and not line.startswith("#"):
            print(json.dumps(player.do(json.loads(line)), separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
