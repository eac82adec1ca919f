"""The migration pages: both columns of each page run, and their settings and methods exist."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

import pytest

from kafka_msgs import client
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client.property_table import find_setting
from tests.support.markdown_pages import ROOT

PEERS: Final = {"kafka-python": "kafka", "aiokafka": "aiokafka", "confluent-kafka": "confluent_kafka"}
_ROW: Final = re.compile(r"^\| (.+?) \| (.+?) \|$", re.MULTILINE)

each_peer = pytest.mark.parametrize("peer", PEERS)


def page(peer: str) -> str:
    """Return the text of a migration page."""
    return (ROOT / "docs" / "how-to" / f"migrate-from-{peer}.md").read_text(encoding="utf-8")


def rows(peer: str, section: str) -> list[tuple[str, str]]:
    """Return the rows of the table in a section, without its head."""
    text = page(peer).partition(f"## {section}\n")[2].partition("\n## ")[0]
    return [(left.strip("`"), right.strip("`")) for left, right in _ROW.findall(text)][1:]


@each_peer
def test_both_columns_do_the_same(peer: str) -> None:
    pytest.importorskip(PEERS[peer])
    programs = re.findall(r"```py\n(.*?)```", page(peer), re.DOTALL)
    assert len(programs) == 4
    results = []
    with EmbeddedBroker() as broker:
        for number, program in enumerate(programs):
            topic = f"t{number}"
            with Admin(broker.bootstrap_servers) as admin:
                admin.create_topics([NewTopic(topic, partitions=1)]).all()
            names: dict[str, Any] = {"servers": broker.bootstrap_servers, "topic": topic, "group": f"g{number}"}
            exec(compile(program, f"{peer}-{number}", "exec"), names)
            results.append(asyncio.run(names["main"]()) if "main" in names else names["result"])
    assert [result[1:] for result in results] == [(0, 0, b"k", b"hello")] * 4
    assert [result[0] for result in results] == [f"t{number}" for number in range(4)]


@each_peer
def test_every_setting_of_the_page_is_read(peer: str) -> None:
    found = rows(peer, "Settings")
    assert len(found) > 20
    for theirs, ours in found:
        setting = find_setting(theirs)
        assert setting is not None, theirs
        keywords = {setting.client, setting.consumer, setting.producer}
        expected = {"first argument": "bootstrap_servers", "heartbeat_frequency": "heartbeat_interval"}.get(ours, ours)
        assert expected in keywords, theirs


@each_peer
def test_every_method_of_the_page_exists(peer: str) -> None:
    module = pytest.importorskip(PEERS[peer])
    found = rows(peer, "Methods")
    assert len(found) > 15
    for theirs, ours in found:
        for package, name in ((module, theirs), (client, ours)):
            cls, _, method = name.partition(".")
            assert callable(getattr(getattr(package, cls), method)), name
