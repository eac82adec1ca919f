"""Known bugs of the release, by name: Kafka's recordings show each of them, and this library avoids them by default."""

from __future__ import annotations

from kafka_msgs.error_codes import ErrorCode
from tests.groups.transcripts_by_request import partitions, told


def test_consumer_assignors_draw() -> None:
    """One member requests ``range`` and one ``uniform``, and nothing else changes."""
    kafka, ours = (told("consumer-assignors-draw", side) for side in ("kafka", "ours"))
    assert [kafka.epoch(f"A {number}") for number in (1, 2, 3)] == [4, 5, 6]

    described = ours.group("later")
    assert (described["groupEpoch"], described["groupState"], described["assignorName"]) == (3, "Stable", "uniform")


def test_consumer_regex_matches_nothing() -> None:
    """``B`` gets the partition that ``A`` revoked when its new regular expression matched no topic."""
    name = "consumer-regex-matches-less"
    owned = {
        side: {member: partitions(each) for member, each in told(name, side).members("later").items()}
        for side in ("kafka", "ours")
    }
    assert owned["kafka"] == {"A": {}, "B": {"in": [1]}}
    assert owned["ours"] == {"A": {}, "B": {"in": [0, 1]}}


def test_failed_append_stops_timers() -> None:
    """``A`` revoked a partition and ``B`` left, but neither change is in the log. Timeouts remove both."""
    kafka, ours = (told("consumer-failed-append", side) for side in ("kafka", "ours"))
    assert not any("timeout" in key for key in kafka.expired)
    assert sorted(kafka.members("after the session timeout")) == ["A", "B"]
    assert kafka.group("after the session timeout")["groupState"] == "Reconciling"

    assert "A" not in ours.members("after the rebalance timeout")
    assert ours.error("A 2") == ErrorCode.UNKNOWN_MEMBER_ID
    assert ours.members("after the session timeout") == {}


def _errors(side: str) -> dict[str, int]:
    found = told("offset-metadata-size", side)
    names = ("8 letters", "9 letters", "4 accents", "8 accents", "3 faces", "5 faces")
    return {name: found[name]["topics"][0]["partitions"][0]["errorCode"] for name in names}


def test_offset_metadata_in_characters() -> None:
    """The limit is 8 bytes. An accented letter has 2 bytes and 1 UTF-16 unit; an emoji has 4 bytes and 2 units."""
    assert [name for name, error in _errors("kafka").items() if error] == ["9 letters", "5 faces"]
    assert [name for name, error in _errors("ours").items() if error] == [
        "9 letters",
        "8 accents",
        "3 faces",
        "5 faces",
    ]
    assert set(_errors("ours").values()) == {ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE}


def _counts(side: str, name: str) -> dict[str, int]:
    [subtopology] = told("streams-reload", side).group(name)["topology"]["subtopologies"][1:]
    topics = subtopology["stateChangelogTopics"] + subtopology["repartitionSourceTopics"]
    return {topic["name"]: topic["partitions"] for topic in topics}


def test_streams_load_forgets_counts() -> None:
    """The partition is loaded after the first description. A heartbeat precedes the third description."""
    names = [f"StreamsGroupDescribe#{number}" for number in (12, 13, 15)]
    known = {"g-store-changelog": 2, "g-rep": 2}
    assert [_counts("kafka", name) for name in names] == [known, dict.fromkeys(known, 0), dict.fromkeys(known, 0)]
    assert [_counts("ours", name) for name in names] == [known] * 3
