"""The statistics of a capture equal hand-counted numbers."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.capture import Exchange, FaultKind, read_exchanges
from kafka_msgs.capture.summary import quantile, summarize
from tests.support.conversations import reply, talk
from tests.support.packets import everything, pcap, segments
from tests.support.recordings import PACKETS, port_of


def test_the_figures_of_a_recording() -> None:
    items = list(read_exchanges(PACKETS / "shop.pcapng", ports=[port_of("shop.pcapng")]))
    summary = summarize(items)
    exchanges = [each for each in items if isinstance(each, Exchange)]
    assert not summary.damaged
    assert sum(api.exchanges for api in summary.apis) == len(exchanges)
    assert [(api.api_key, api.version) for api in summary.apis] == sorted(
        {(each.api_key, each.version) for each in exchanges}
    )
    joins = next(api for api in summary.apis if (api.api, api.version) == ("JoinGroup", 5))
    assert (joins.exchanges, joins.errors, joins.clients) == (2, {"MEMBER_ID_REQUIRED": 1}, {"billing-1": 2})
    careless = next(api for api in summary.apis if "sensor" in api.clients and api.api == "Produce")
    assert (careless.exchanges, careless.answered) == (3, 2)


def test_faults_are_counted_with_their_bytes() -> None:
    summary = summarize(everything(pcap(segments([*talk(1), ("response", reply(7)), ("response", reply(8))]))))
    assert summary.faults == {FaultKind.ORPHAN: 2}
    assert summary.fault_bytes == {FaultKind.ORPHAN: len(reply(7)) + len(reply(8))}
    assert summary.damaged


def test_a_capture_without_exchanges() -> None:
    summary = summarize([])
    assert (summary.apis, summary.faults, summary.damaged) == ((), {}, False)
    assert quantile([], 0.5) is None


@given(values=st.lists(st.integers(0, 2**40), min_size=2, max_size=30))
def test_quantiles_are_those_of_the_standard_library(values: list[int]) -> None:
    ascending = sorted(values)
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    assert [quantile(ascending, number / 10) for number in range(1, 10)] == pytest.approx(tenths)
