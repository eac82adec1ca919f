"""Deliveries, in C and in Python."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from kafka_msgs._backend import backend
from kafka_msgs.client.producer import AsyncDelivery, Delivery
from kafka_msgs.client.producer.producer_batch import ProducerBatch
from kafka_msgs.records import CompressionType


def a_batch() -> ProducerBatch:
    """Return a batch of three records."""
    batch = ProducerBatch("t", 4, 0.0, codec=CompressionType.NONE, level=None, size_limit=1000)
    for number in range(3):
        batch.append(None, b"%d" % number, timestamp=number)
    return batch


@pytest.mark.parametrize("kind", [Delivery, AsyncDelivery])
def test_a_delivery_knows_what_became_of_its_batch(kind: type[Delivery] | type[AsyncDelivery]) -> None:
    batch = a_batch()
    deliveries = [kind(batch, number, 10 + number) for number in range(3)]
    assert not any(delivery.done for delivery in deliveries)
    batch.complete(base_offset=70)
    assert all(delivery.done and delivery.error is None for delivery in deliveries)
    assert batch.metadata(2, 12) == ("t", 4, 72, 12)


def test_a_failed_batch_fails_its_deliveries() -> None:
    batch = a_batch()
    delivery = Delivery(batch, 1, 5)
    batch.fail(ValueError("no"))
    assert delivery.done
    with pytest.raises(ValueError, match="no"):
        delivery.result()


def test_deliveries_of_a_split_batch_follow_their_records() -> None:
    batch = a_batch()
    deliveries = [Delivery(batch, number, 0) for number in range(3)]
    whole = [batch]
    while any(part.count > 1 for part in whole):
        whole = [smaller for part in whole for smaller in (part.split() if part.count > 1 else [part])]
    assert [part.count for part in whole] == [1, 1, 1]
    whole[0].complete(base_offset=7)
    whole[1].fail(ValueError("no"))
    whole[2].complete(base_offset=90)
    assert deliveries[0].result().offset == 7
    assert isinstance(deliveries[1].error, ValueError)
    assert deliveries[2].result().offset == 90


@pytest.mark.skipif(backend() != "c", reason="the storage of Python has other errors")
def test_a_delivery_is_made_of_three_things() -> None:
    wrong: list[Any] = [(), (1,), (a_batch(), "1", 2), (a_batch(), 1, 2**64)]
    for arguments in wrong:
        with pytest.raises((TypeError, OverflowError)):
            Delivery(*arguments)


@pytest.mark.skipif(backend() != "c", reason="the collector visits what is made in Python")
@pytest.mark.parametrize("kind", [Delivery, AsyncDelivery])
def test_the_collector_does_not_visit_deliveries(kind: type[Delivery] | type[AsyncDelivery]) -> None:
    assert not gc.is_tracked(kind(a_batch(), 0, 0))


def test_a_batch_that_is_done_leaves_its_producer() -> None:
    done, failed, split = a_batch(), a_batch(), a_batch()
    for batch in (done, failed, split):
        batch.owner = object()
    done.complete(base_offset=1)
    failed.fail(ValueError("no"))
    assert all(part.owner is not None for part in split.split())
    assert [batch.owner for batch in (done, failed, split)] == [None] * 3


def test_a_delivery_in_c_keeps_its_batch_alive_and_lets_it_go() -> None:
    import weakref

    class Watched(ProducerBatch):
        pass

    batch = Watched("t", 0, 0.0, codec=CompressionType.NONE, level=None, size_limit=10)
    seen = weakref.ref(batch)
    delivery = Delivery(batch, 0, 0)
    del batch
    assert seen() is not None
    del delivery
    assert seen() is None
