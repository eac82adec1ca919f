"""Every message at every version compared with Kafka's own classes: values, damaged bytes, values at other versions.

These seeded examples are the first of the thousands that ``make oracle`` runs; Hypothesis adds more examples and
shrinks failing ones.
"""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from kafka_msgs import iter_message_classes
from kafka_msgs.messages import OffsetFetchRequest
from kafka_msgs.testing.strategies import messages
from tests.oracle import Oracle
from tests.oracle.class_pairs import ALL_NAMES, Subject, subjects_of
from tests.oracle.examples import EXAMPLES
from tests.oracle.parity import Difference, Tally, compare_inputs, compare_values

pytestmark = pytest.mark.oracle

COUNT = 20
"""Seeded examples of each type for each message at each version."""

SEED = "1"


def assert_no_difference(differences: list[Difference]) -> None:
    assert not differences, "\n".join(map(str, differences[:5]))


def test_every_message_of_the_release_has_a_judge(oracle: Oracle) -> None:
    ours = {cls.INFO.name: cls.INFO.versions for cls in iter_message_classes()}
    kafkas = {info.name: info.versions for info in oracle.messages().values() if info.artifact != "kafka-clients-test"}
    assert ours == kafkas
    assert set(ALL_NAMES) == set(oracle.messages())


@pytest.mark.parametrize("name", ALL_NAMES)
def test_values_are_written_and_read_as_kafka_does(oracle: Oracle, name: str) -> None:
    tally = EXAMPLES["values"](oracle, name, COUNT, SEED)
    assert_no_difference(tally.differences)
    expected = COUNT * len(subjects_of(name, oracle))
    assert tally.counts["our bytes read and written back by Kafka"] == expected
    assert tally.counts["bytes equal"] == (expected if oracle.messages()[name].has_json else 0)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_damaged_bytes_are_judged_as_kafka_does_or_more_strictly(oracle: Oracle, name: str) -> None:
    tally = EXAMPLES["damaged bytes"](oracle, name, COUNT, SEED)
    assert_no_difference(tally.differences)
    verdicts = [
        count for what, count in tally.counts.items() if what.startswith(("both accept", "both refuse", "strict"))
    ]
    assert sum(verdicts) == tally.counts["inputs"] == COUNT * len(subjects_of(name, oracle))


@pytest.mark.parametrize("name", ALL_NAMES)
def test_what_a_version_lacks_is_dropped_or_refused_as_kafka_does(oracle: Oracle, name: str) -> None:
    assert_no_difference(EXAMPLES["other versions"](oracle, name, COUNT, SEED).differences)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # it would hide the difference
@pytest.mark.parametrize("name", ALL_NAMES)
def test_hypothesis_finds_no_value_that_kafka_writes_otherwise(oracle: Oracle, name: str) -> None:
    found = subjects_of(name, oracle)

    @settings(
        max_examples=COUNT, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def check(data: DataObject) -> None:
        subject = data.draw(st.sampled_from(found))
        value = data.draw(messages(subject.cls, subject.version))
        assert_no_difference(compare_values(oracle, subject, [value]).differences)

    check()


def _of_another_version(name: str, version: int, other: int, oracle: Oracle) -> tuple[Subject, Subject]:
    """Return a message at two versions, the first with the codecs of the second: a deliberately wrong codec."""
    by_version = {subject.version: subject for subject in subjects_of(name, oracle)}
    return evolve(by_version[version], codecs=by_version[other].codecs), by_version[other]


def test_a_codec_that_writes_wrongly_is_found_out(oracle: Oracle) -> None:
    wrong, other = _of_another_version("OffsetFetchRequest", 7, 5, oracle)
    tally = compare_values(oracle, wrong, [OffsetFetchRequest(group_id="billing")])
    assert {difference.what for difference in tally.differences} >= {"Kafka refuses our bytes", "not so: bytes equal"}
    assert not compare_values(oracle, other, [OffsetFetchRequest(group_id="billing")]).differences


def test_a_codec_that_accepts_too_much_or_too_little_is_found_out(oracle: Oracle) -> None:
    wrong, _ = _of_another_version("OffsetFetchRequest", 7, 5, oracle)
    tally: Tally = compare_inputs(oracle, wrong, [bytes.fromhex("000167 ffffffff"), bytes.fromhex("0267 00 00 00")])
    assert [difference.what for difference in tally.differences] == ["only Kafka refuses", "only we refuse"]
