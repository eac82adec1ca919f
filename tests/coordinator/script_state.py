"""The state of a script: commands to send, pending responses, and the environment of a coordinator.

The environment is everything that a broker would change: topics, time, failed or held appends, elections, configs.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Generator, Mapping
from random import Random
from typing import Any, Final, TypeAlias

from tests.coordinator.oracle import Command, Result
from tests.coordinator.request_bodies import complete, versions_of

__all__ = ["PLUGIN", "Body", "Script", "World", "topic_id"]

Script: TypeAlias = Generator[list[Command], list[Result], None]
"""Yields commands and receives their results, repeatedly; the first command is ``start``."""

Body: TypeAlias = dict[str, Any]

PLUGIN: Final = {
    "group.streams.topology.description.plugin.class": "org.apache.kafka.coordinator.group.TopologyDescriptions"
}
"""Configs with a plugin that keeps topology descriptions in memory."""

_APPEND_ERRORS: Final = (
    "NOT_ENOUGH_REPLICAS",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "NOT_LEADER_OR_FOLLOWER",
    "KAFKA_STORAGE_ERROR",
    "MESSAGE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
    "REQUEST_TIMED_OUT",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "UNKNOWN_SERVER_ERROR",
    "INVALID_PRODUCER_EPOCH",
    "TRANSACTION_ABORTABLE",
)
_MOST_PARTITIONS: Final = 40
"""More than the initial number of buckets of a Java table of integers, so partitions are in the table's order."""
_MADE_ID: Final = re.compile("-0000-4000-8000-([0-9a-f]{12})$")


def topic_id(name: str) -> str:
    """Return the topic id of Kafka's side in its text form."""
    return urlsafe_b64encode(hashlib.sha256(name.encode()).digest()[:16]).rstrip(b"=").decode()


class World:
    """Collects commands, exchanges them for results, and passes responses to their handlers.

    Steps that change the environment are methods without arguments, so that a script can list them with weights.
    """

    def __init__(self, random: Random, config: Mapping[str, Any], topics: Mapping[str, int]) -> None:
        self.random = random
        self.topics = dict(topics)
        self.groups: tuple[str, ...] = ("g",)
        self.group_configs: tuple[Mapping[str, str], ...] = ()
        self.now = 1000
        self.producers: list[int] = []
        self.drawn = 0
        """A lower bound of the number of generated ids: the highest number in the member ids of responses."""
        self._commands: list[Command] = []
        self._waiting: dict[str, Callable[[Body], None]] = {}
        self._asked = 0
        self._leader_epoch = 1
        self._resigned = False
        self._holding = False
        settings = {"offsets.topic.num.partitions": 1, **config}
        self.do("start", now=self.now, bytes=True, config={name: str(value) for name, value in settings.items()})
        brokers = [{"id": number, "rack": f"r{number % 2}"} for number in range(3)]
        created = [{"name": name, "partitions": count} for name, count in topics.items()]
        self.do("topics", brokers=brokers, create=created)

    def do(self, op: str, **fields: Any) -> None:
        """Add a command."""
        self._commands.append({"op": op, **fields})

    def ask(
        self,
        api: str,
        body: Mapping[str, Any],
        *,
        version: int | None = None,
        client: str = "client",
        then: Callable[[Body], None] | None = None,
    ) -> None:
        """Add a request, in a random version unless one is given; ``then`` receives the body of the response."""
        chosen = self.random.choice(versions_of(api)) if version is None else version
        self._asked += 1
        name = f"{self._asked}"
        if then is not None:
            self._waiting[name] = then
        whole = complete(api, chosen, body)
        self.do("request", **{"as": name}, api=api, version=chosen, client=client, body=whole)

    def exchange(self) -> Script:
        """Yield the commands so far, and pass the responses in the results to their handlers."""
        commands, self._commands = self._commands, []
        results = yield commands
        for result in results:
            self.now = result.get("now", self.now)
            for answer in result.get("answers", ()):
                self._note_id(answer.get("body", {}).get("memberId"))
                then = self._waiting.pop(answer["to"], None)
                if then is not None and "body" in answer:
                    then(answer["body"])

    def _note_id(self, member_id: str | None) -> None:
        if found := _MADE_ID.search(member_id or ""):
            self.drawn = max(self.drawn, int(found[1], 16))

    def chosen(self, steps: Mapping[Callable[[], None], int]) -> Callable[[], None]:
        """Return a random step, by weight."""
        return self.random.choices(list(steps), list(steps.values()))[0]

    def surroundings(self) -> dict[Callable[[], None], int]:
        """Return the steps that change the environment, with their weights."""
        return {
            self.pass_time: 40,
            self.pass_much_time: 3,
            self.grow_topic: 4,
            self.create_topic: 3,
            self.delete_topic: 3,
            self.fail_append: 3,
            self.hold_commits: 12 if self._holding else 4,
            self.hold_background: 3,
            self.reload: 4,
            self.resign: 10 if self._resigned else 1,
            self.configure_group: 4,
            self.list_timers: 1,
        }

    def pass_time(self) -> None:
        """Advance the time, by up to a few seconds."""
        self.do("advance", ms=self.random.choice((0, 1, 100, 1000, 1000, 3000, 5000, 9000)))

    def pass_much_time(self) -> None:
        """Advance the time enough for sessions to expire."""
        self.do("advance", ms=self.random.choice((20_000, 46_000, 61_000, 301_000, 700_000)))

    def grow_topic(self) -> None:
        """Add partitions to a topic."""
        small = [name for name, count in self.topics.items() if count < _MOST_PARTITIONS]
        if small:
            name = self.random.choice(small)
            self.topics[name] += self.random.choice((1, 1, 1, 2, 2, 2, 16))
            self.do("topics", grow=[{"name": name, "partitions": self.topics[name]}])

    def create_topic(self) -> None:
        """Create a missing topic of ``TOPICS``."""
        missing = [name for name in TOPICS if name not in self.topics]
        if missing:
            name = self.random.choice(missing)
            self.topics[name] = self.random.choice((1, 2, 3))
            self.do("topics", create=[{"name": name, "partitions": self.topics[name]}])

    def create_missing_topics(self) -> None:
        """Create all missing topics of ``TOPICS``."""
        missing = {name: 2 for name in TOPICS if name not in self.topics}
        self.topics |= missing
        self.do("topics", create=[{"name": name, "partitions": count} for name, count in missing.items()])

    def delete_topic(self) -> None:
        """Delete a topic, unless commits are held: Kafka would wait for the commit."""
        if len(self.topics) > 1 and not self._holding:
            name = self.random.choice(list(self.topics))
            del self.topics[name]
            self.do("topics", delete=[name])

    def fail_append(self) -> None:
        """Make the next append fail."""
        self.do("fail-append", error=self.random.choice(_APPEND_ERRORS))

    def hold_commits(self) -> None:
        """Hold commits, or release them, sometimes only once."""
        if not self._holding:
            self.do("hold", commits=True)
            self._holding = True
            return
        if self.random.random() < 0.8:
            self.do("hold", commits=False)
            self._holding = False
        self.do("commit")

    def hold_background(self) -> None:
        """Hold background work, or run pending work."""
        if self.random.random() < 0.5:
            self.do("background")
        else:
            self.do("hold", background=self.random.random() < 0.5)

    def resign(self) -> None:
        """Resign the partition, or become its leader again."""
        self._leader_epoch += 1
        self.do("elect" if self._resigned else "resign", partition=0, epoch=self._leader_epoch)
        self._resigned = not self._resigned

    def reload(self) -> None:
        """Resign the partition and load it again, with everything committed."""
        if not self._resigned:
            self.resign()
        self.resign()

    def recover(self) -> None:
        """Become the leader of the partition, and release everything that is held."""
        if self._resigned:
            self.resign()
        self.do("hold", commits=False, background=False)
        self.do("commit")
        self.do("background")
        self._holding = False

    def configure_group(self) -> None:
        """Set configs of a group."""
        if self.group_configs:
            config = self.random.choice(self.group_configs)
            self.do("group-config", group=self.random.choice(self.groups), config=dict(config))

    def list_timers(self) -> None:
        """List all pending timers."""
        self.do("timers")

    def end_transaction(self) -> None:
        """End the transaction of a known or unknown producer."""
        producer = self.random.choice([*self.producers, 77])
        commit = self.random.random() < 0.6
        self.do("end-txn", partition=0, producer=producer, epoch=0, commit=commit)


TOPICS: Final = ("in", "u", "t", "x3", "y4", "g-rep", "g-cl", "g-store-changelog")
"""Topic names that scripts use; not all topics exist at the start."""
