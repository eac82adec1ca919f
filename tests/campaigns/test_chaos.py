"""A bounded part of the chaos campaign: simulated clients under random faults, and tests of the checkers."""

from __future__ import annotations

import pytest

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker.faults import At, DropResponse, Fault
from kafka_msgs.broker.storage.producer_state import ProducerStateEntry
from tests.campaigns.chaos.history import Ledger, Outcome, Promises
from tests.campaigns.chaos.simulation import simulate


@pytest.mark.parametrize("seed", [1, 2])
def test_simulated_clients_keep_all_promises(seed: int) -> None:
    report = simulate(seed, seconds=8)
    assert report.broken == []
    assert report.records > 200


def test_a_seed_repeats_a_run() -> None:
    first, second = simulate(5, seconds=2), simulate(5, seconds=2)
    assert first == second


def judged(log: list[tuple[int, bytes]], visible: list[tuple[int, bytes]] | None = None) -> list[str]:
    """Judge a sender ``a`` with the acknowledged values 1 and 2, and another with a committed transaction."""
    ledger = Ledger()
    sender = ledger.sender("a", "t", Promises.ONCE)
    sender.acked = {b"a:1": (0, 0), b"a:2": (0, 1)}
    other = ledger.sender("b", "t", Promises.ONCE)
    transaction = other.begin()
    transaction.values, transaction.outcome = [b"b:1", b"b:2"], Outcome.COMMITTED
    ledger.judge({("t", 0): log}, {("t", 0): log if visible is None else visible})
    return ledger.broken


GOOD = [(0, b"a:1"), (1, b"a:2"), (2, b"b:1"), (3, b"b:2")]


@pytest.mark.parametrize(
    ("log", "word"),
    [
        (GOOD, None),
        (GOOD[1:], "lost"),
        ([*GOOD, (4, b"a:1")], "more than once"),
        ([GOOD[1], GOOD[0], *GOOD[2:]], "out of order"),
        ([(1, b"a:1"), (2, b"a:2"), *GOOD[2:]], "other places"),
        (GOOD[:3], "transaction"),
    ],
)
def test_the_judge_notices(log: list[tuple[int, bytes]], word: str | None) -> None:
    found = judged(log)
    assert (found == []) if word is None else any(word in each for each in found)


def test_the_judge_notices_what_a_group_and_a_copy_lack() -> None:
    ledger = Ledger()
    ledger.read["g"] = {("t", 0, 0)}
    ledger.committed("g", {("t", 0): 2})
    ledger.judge_group("g", {("t", 0): GOOD[:2]}, {("t", 0): 1})
    ledger.judge_copy({("t", 0): GOOD[:2]}, {("copy", 0): [(0, b"c:1=0/0"), (1, b"c:2=0/0")]})
    assert [each.split(" ")[:3] for each in ledger.broken] == [
        ["g", "was", "never"],
        ["g", "committed", "2"],
        ["the", "copy", "in"],
    ]


def test_a_broker_that_forgets_sequences_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (At(100, Fault(DropResponse(), api=ApiKey.PRODUCE, client_id="idempotent.1", times=5)),)
    assert simulate(1, seconds=3, script=script).broken == []
    monkeypatch.setattr(ProducerStateEntry, "duplicate_of", lambda *_: None)
    assert any("more than once" in each for each in simulate(1, seconds=3, script=script).broken)
