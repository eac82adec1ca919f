"""Client experience in captures, compared with statistics counted one by one here."""

from __future__ import annotations

import re
from statistics import median

import pytest

from kafka_msgs.analysis.capture_clients import ClientTally, captures_report, highest_versions
from kafka_msgs.capture import Exchange, read_exchanges
from kafka_msgs.capture.summary import summarize
from kafka_msgs.report import Table
from tests.support.recordings import PACKETS, port_of

FILES = ("sasl.pcap", "shop.pcapng")
ITEMS = [(name, item) for name in FILES for item in read_exchanges(PACKETS / name, ports=[port_of(name)])]
EXCHANGES = [(name, item) for name, item in ITEMS if isinstance(item, Exchange)]


@pytest.fixture
def tally() -> ClientTally:
    made = ClientTally()
    for name, item in ITEMS:
        made.add(name, item)
    return made


def test_each_client_has_its_software_its_latencies_and_its_errors(tally: ClientTally) -> None:
    found = {(row["clientId"], row["software"]): row for row in tally.rows()}
    assert ("audit-client", "kafka-python 3.0.12") in found
    assert ("bare", None) in found
    assert sum(row["exchanges"] for row in found.values()) == len(EXCHANGES)
    row = found["billing-1", "confluent-kafka-python 2.16.1-rdkafka-2.16.0"]
    own = [item for _, item in EXCHANGES if item.client_id == "billing-1"]
    prompt = [
        each.latency_us
        for each in own
        if each.latency_us is not None and each.api not in ("Fetch", "JoinGroup", "SyncGroup")
    ]
    assert (row["exchanges"], row["measured"], row["maxUs"]) == (len(own), len(prompt), max(prompt))
    assert row["p50Us"] == median(prompt)
    assert row["errors"] == sum(len(each.errors) for each in own)


def test_the_report_names_the_slowest_exchanges_and_old_versions(tally: ClientTally) -> None:
    report = captures_report(summarize(item for _, item in ITEMS), tally)
    tables = {each.title: each for each in report.sections if isinstance(each, Table)}
    slowest = tables["The slowest exchanges that do not wait on purpose"]
    assert len(slowest.rows) == 30
    prompt = sorted(
        (
            each.latency_us
            for _, each in EXCHANGES
            if each.latency_us is not None and each.api not in ("Fetch", "JoinGroup", "SyncGroup")
        ),
        reverse=True,
    )
    assert [row[0] for row in slowest.rows] == pytest.approx([each / 1_000_000 for each in prompt[:30]])
    clients = tables["Clients, the slowest first"]
    old = " ".join(row[clients.columns.index("oldVersions")] for row in clients.rows)
    named = re.findall(r"(\w+) v(\d+) of v(\d+)", old)
    assert {"Fetch", "JoinGroup"} & {api for api, _, _ in named}
    assert all(int(low) < int(high) == highest_versions()[api] for api, low, high in named)
    assert sum(row[3] for row in tables["Apis and versions"].rows) == len(EXCHANGES)
