"""Groups that migrate between the classic and the consumer protocol, by the coordinator's migration policy.

``C`` is a member with the classic protocol, and ``K`` one with the consumer protocol.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.error_codes import ErrorCode
from tests.groups.transcripts_by_request import SIDES, Told, partitions, told

OK = ErrorCode.NONE
UPGRADES = pytest.mark.parametrize("policy", ["upgrade", "bidirectional"])


def _kinds(found: Told, name: str) -> dict[str, Any]:
    """Return the members by ``C`` and ``K``."""
    return {"K" if member == "K" else "C": each for member, each in found.members(name).items()}


@SIDES
@UPGRADES
def test_a_member_of_the_consumer_protocol_upgrades_a_classic_group(side: str, policy: str) -> None:
    """The generation of the group becomes its epoch, and the classic member keeps its partitions."""
    migration = told(f"migration-{policy}", side)

    assert (migration.epoch("K joins"), partitions(migration["K joins"])) == (2, {})
    assert migration.records("K joins")[0] == ("GroupMetadata", None)
    members = _kinds(migration, "both kinds")
    assert {name: each["memberEpoch"] for name, each in members.items()} == {"C": 1, "K": 2}
    assert partitions(members["C"]) == {"t": [0, 1]}


@SIDES
@UPGRADES
def test_descriptions_tell_the_protocol_of_each_member(side: str, policy: str) -> None:
    members = _kinds(told(f"migration-{policy}", side), "both kinds")
    assert {name: each["memberType"] for name, each in members.items()} == {"C": 0, "K": 1}


@SIDES
@UPGRADES
def test_a_classic_member_learns_of_a_new_assignment_by_its_heartbeat(side: str, policy: str) -> None:
    migration = told(f"migration-{policy}", side)

    assert migration.error("C is told to join") == ErrorCode.REBALANCE_IN_PROGRESS
    assert migration["C joins again"]["generationId"] == 1
    assert migration.error("C learns of it") == ErrorCode.REBALANCE_IN_PROGRESS
    assert migration["C gave it up"]["generationId"] == 2
    assert (migration["C joins again"]["leader"], migration["C joins again"]["members"]) == ("", [])


@SIDES
@UPGRADES
def test_members_of_both_protocols_share_the_partitions(side: str, policy: str) -> None:
    migration = told(f"migration-{policy}", side)

    assert partitions(migration["K gets one"]) == {"t": [1]}
    settled = _kinds(migration, "settled")
    assert {name: partitions(each) for name, each in settled.items()} == {"C": {"t": [0]}, "K": {"t": [1]}}
    assert migration.group("settled")["groupState"] == "Stable"


@SIDES
def test_a_group_becomes_classic_again_when_its_last_consumer_member_leaves(side: str) -> None:
    migration = told("migration-bidirectional", side)

    assert migration.group("after K left")["errorCode"] == ErrorCode.GROUP_ID_NOT_FOUND
    [group] = migration["classic after K left"]["groups"]
    assert (group["groupState"], len(group["members"])) == ("PreparingRebalance", 1)
    assert migration.error("C at the end") == ErrorCode.REBALANCE_IN_PROGRESS
    assert migration.records("K leaves")[-1][0] == "GroupMetadata"


@SIDES
def test_a_group_stays_a_consumer_group_if_the_policy_has_no_downgrade(side: str) -> None:
    migration = told("migration-upgrade", side)

    assert migration.group("after K left")["groupState"] == "Assigning"
    assert migration.error("C at the end") == OK


@SIDES
@pytest.mark.parametrize("policy", ["downgrade", "disabled", "refused"])
def test_a_group_is_not_upgraded_without_the_policy_or_by_another_protocol_type(side: str, policy: str) -> None:
    migration = told(f"migration-{policy}", side)

    assert migration.error("K joins") == ErrorCode.GROUP_ID_NOT_FOUND
    assert migration.records("K joins") == []


@SIDES
def test_an_empty_group_changes_its_kind_whatever_the_policy_is_and_keeps_its_offsets(side: str) -> None:
    migration = told("migration-empty", side)
    kinds = [migration[name]["groups"][0]["groupType"] for name in ("simple", "consumer", "classic")]

    assert kinds == ["classic", "consumer", "classic"]
    for name in ("fetch", "fetch again"):
        [topic] = migration[name]["groups"][0]["topics"]
        assert [each["committedOffset"] for each in topic["partitions"]] == [5]
