"""Random quota usage: Kafka's quota managers and this library's return equal throttle times."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest

from kafka_msgs.broker.quotas import ClientQuotaManager, QuotaMeter, Window
from kafka_msgs.messages.client_quota_record import ClientQuotaRecord, EntityData
from tests.broker.quotas.oracle import QuotaOracle
from tests.support.virtual_brokers import START

METERS: Final = {
    "producer_byte_rate": "produce",
    "consumer_byte_rate": "fetch",
    "request_percentage": "request",
    "controller_mutation_rate": "mutation",
}
USERS: Final = ("alice", "bob")
CLIENTS: Final = ("one", "two", None)
COMMANDS: Final = 300

Command = dict[str, Any]


class Ours:
    """Applies the same commands to our meters."""

    def run(self, command: Command) -> Command:
        if command["do"] == "open":
            window = Window(command["samples"], 1000 * command["seconds"])
            self.quotas = ClientQuotaManager(window, window)
            self.meters = self.quotas.new_meters()
            return {}
        if command["do"] == "limit":
            self.quotas.follow([limit_record(command)])
            return {}
        meter: QuotaMeter = getattr(self.meters, METERS[command["quota"]])
        return {"result": float(self.ask(meter, command) or 0)}

    def ask(self, meter: QuotaMeter, command: Command) -> int | None:
        who = command["user"], command["client"]
        if command["do"] == "most":
            return meter.most_in_window(*who)
        method = {"charge": meter.charge, "admit": meter.admit, "refund": meter.refund}[command["do"]]
        return method(*who, command["value"], command["now"])


def limit_record(command: Command) -> ClientQuotaRecord:
    kinds = {"user": "user", "client": "client-id"}
    entity = tuple(EntityData(entity_type=kinds[kind], entity_name=command[kind]) for kind in kinds if kind in command)
    limit = command["limit"]
    return ClientQuotaRecord(entity=entity, key=command["quota"], value=limit or 0.0, remove=limit is None)


def script(seed: int) -> Iterator[Command]:
    """Yield commands for one quota at a time, mixed with changes of the quota."""
    dice, now = Random(seed), START
    yield {"do": "open", "now": now, "samples": dice.choice((2, 3, 11)), "seconds": dice.choice((1, 2))}
    for quota in METERS:
        for _ in range(COMMANDS):
            now += int(dice.choice((0, 1, 10, 100, 1000, 20_000)) * dice.random())
            yield {"now": now, "quota": quota, **dice.choices((limited, used), (1, 6))[0](dice, quota)}


def limited(dice: Random, quota: str) -> Command:
    entity: Command = {}
    while not entity:
        if dice.random() < 0.6:
            entity["user"] = dice.choice((*USERS, None))
        if dice.random() < 0.6:
            entity["client"] = dice.choice(("one", "two", None))
    return {"do": "limit", "limit": dice.choice((None, 1.0, 2.5, 100.0, 5e4)), **entity}


def used(dice: Random, quota: str) -> Command:
    names, sizes = ["charge", "charge", "charge", "refund", "most"], (1, 7, 100, 10**6)
    if quota == "controller_mutation_rate":
        # More partitions than this would need throttle times beyond the range of the response field.
        names, sizes = ["charge", "admit"], (1, 7, 100, 1000)
    return {
        "do": dice.choice(names),
        "user": dice.choice(USERS),
        "client": dice.choice(CLIENTS),
        "value": float(dice.choice(sizes) * dice.randrange(1, 10)),
    }


@pytest.fixture(scope="module")
def kafka_quotas() -> Iterator[QuotaOracle]:
    oracle = QuotaOracle()
    yield oracle
    oracle.close()


@pytest.mark.parametrize("seed", range(20))
def test_clients_wait_as_long_as_in_kafka(seed: int, kafka_quotas: QuotaOracle) -> None:
    commands, ours = list(script(seed)), Ours()
    theirs = kafka_quotas.ask(commands)
    pairs = zip(commands, map(ours.run, commands), theirs, strict=True)
    assert [each for each in pairs if each[1] != each[2]] == []
    assert any(answer.get("result") for answer in theirs)
