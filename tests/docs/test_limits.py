"""Statements on missing features are true: no page denies a feature that exists, and denied features do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest

from kafka_msgs import ApiKey, ApiVersionsRequest
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.security.credentials import MECHANISMS, OAUTHBEARER, PLAIN
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.cli.command_group import command
from kafka_msgs.client import Client
from kafka_msgs.client import consumer as consumer_package
from kafka_msgs.client.consumer.assignors import ASSIGNORS
from kafka_msgs.client.property_table import SETTINGS
from tests.support.markdown_pages import ROOT, pages

_DENIAL: Final = re.compile(
    r"\b(?:not supported|unsupported|(?:does|do|is|are) not (?:support|implement|exist|available|there)\w*"
    r"|(?:is|are) missing)\b"
)
_SENTENCE: Final = re.compile(r"[^.|:;]+")


def _denials() -> Iterator[tuple[str, str]]:
    """Yield the parts of sentences that deny something, with their page."""
    for page in pages():
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for sentence in _SENTENCE.findall(text):
            if _DENIAL.search(sentence):
                yield str(page.relative_to(ROOT)), " ".join(sentence.split())


DENIALS: Final = tuple(_denials())
FEATURES: Final = {
    "assignors": [f"`{name}`" for name in ASSIGNORS],
    "commands": [f"`kafka-msgs {name}`" for name in command.commands],
    "settings": [f"`{setting.name}`" for setting in SETTINGS],
    "sources": ["`kafka-log`", "`kafka-offsets`", "`kafka-cluster-metadata`", "`kafka-capture`", "`kafka-live`"],
}


@pytest.mark.parametrize("kind", FEATURES)
def test_no_page_denies_a_feature_that_exists(kind: str) -> None:
    found = [(page, text) for page, text in DENIALS for name in FEATURES[kind] if name in text]
    assert not found


def test_the_denials_of_the_pages_are_found() -> None:
    assert (
        "docs/reference/broker.md",
        "Kerberos, tiered storage and changes of the controller quorum are missing",
    ) in DENIALS


MISSING: Final = {
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UNREGISTER_CONTROLLER,
}
"""The APIs of brokers that the page of the embedded broker calls missing."""


def test_the_embedded_broker_offers_all_apis_except_those_that_its_page_calls_missing() -> None:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    with EmbeddedBroker(telemetry=True) as broker, Client(broker.bootstrap_servers) as client:
        offered = {each.api_key for each in client.call(request).api_keys}
    known = {cls.INFO.api_key for cls in iter_message_classes() if "broker" in getattr(cls.INFO, "listeners", ())}
    assert known - offered == MISSING


def test_the_embedded_broker_has_the_mechanisms_that_its_page_does_not_deny() -> None:
    assert {PLAIN, OAUTHBEARER, *MECHANISMS} == {"PLAIN", "OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512"}


def test_the_client_has_no_share_consumer_as_the_comparison_states() -> None:
    assert "no consumer" in (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    assert not [name for name in dir(consumer_package) if "share" in name.lower()]
