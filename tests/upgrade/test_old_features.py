"""Metadata logs of old feature levels: the verdict is what a node of the current release did with the same files."""

from __future__ import annotations

import json
from typing import Final

import pytest

from kafka_msgs.messages import RELEASE
from kafka_msgs.upgrade import check_upgrade, parse_release, read_cluster_files
from tests.support.recordings import OLD_FEATURES

OUTCOMES: Final[dict[str, str]] = json.loads((OLD_FEATURES / "outcomes.json").read_text(encoding="ascii"))


@pytest.mark.parametrize("metadata_version", OUTCOMES)
def test_files_are_blocked_if_the_new_node_did_not_start(metadata_version: str) -> None:
    files = read_cluster_files([OLD_FEATURES / metadata_version])
    check = check_upgrade(parse_release(str(RELEASE)), files=files)
    assert check.blocked == (OUTCOMES[metadata_version] != "started")
    assert check.incomplete == ()
    assert {each.subject for each in check.files} == {"feature metadata.version"}


def test_both_outcomes_were_recorded() -> None:
    assert "started" in OUTCOMES.values()
    assert set(OUTCOMES.values()) != {"started"}
