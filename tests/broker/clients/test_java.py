"""Kafka's Java clients beyond the session: administration, and consumer features."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import pytest

from tests.broker.clients.places import Place
from tests.support.cluster_topics import new_name
from tests.support.foreign_programs import ProgramUnavailableError, java, lines_of
from tests.support.skip_reasons import not_run

_SHARED: Final = {"together": 4}

EXPECTED: Final[Mapping[str, Mapping[str, Any]]] = {
    "Administration": {
        "cluster": {"nodes": 3, "the controller is one": True, "has an id": True},
        "create topics": {"before": 2, "partitions": 2, "replicas": 3, "setting": "2000000", "listed": True},
        "refusals": {
            "no partitions": "InvalidPartitionsException",
            "too many replicas": "InvalidReplicationFactorException",
            "a wrong setting": "InvalidConfigurationException",
            "an unknown setting": "InvalidConfigurationException",
            "a wrong name": "InvalidTopicException",
            "a gap in the assignment": "InvalidReplicaAssignmentException",
            "fewer partitions": "InvalidPartitionsException",
            "an unknown topic": "UnknownTopicOrPartitionException",
            "an unknown id": "UnknownTopicIdException",
            "an offset after the end": "OffsetOutOfRangeException",
            "an unknown group": "GroupIdNotFoundException",
            "deletion of an unknown group": "GroupIdNotFoundException",
            "an unknown transaction": "TransactionalIdNotFoundException",
        },
        "describe topics": {"name by id": True, "partitions": 2, "internal": False, "replicas": 3},
        "settings": {
            "default": "delete DEFAULT_CONFIG",
            **dict.fromkeys(("append", "subtract", "delete", "group", "group again"), True),
        },
        "offsets": {
            "deleted before": 1,
            "earliest": 1,
            "latest": 3,
            "greatest time": 1,
            "at a time": 1,
            "after all": -1,
        },
        "log directories": {"replicas": 6, "one has records": True, "with sizes": True},
        "leaders": {"0": "ElectionNotNeededException", "9": "UnknownTopicOrPartitionException"},
        "reassignments": {
            "nothing to cancel": "NoReassignmentInProgressException",
            "an unknown broker": "InvalidReplicaAssignmentException",
        },
        "groups": {
            "live": ["Stable", "Classic", "range", 1, "reader", "first", 2, False],
            "deletion": "GroupNotEmptyException",
            "offsets of a live member": "UnknownMemberIdException",
            "after its member": "Empty",
            "offset": [2, "note"],
            "offsets left": 0,
            "classic": "consumer",
            "listed": False,
        },
        "transactions": {"open": "Ongoing true", "listed": ["Ongoing"], "producers": [1, 0, 0]},
        "fencing": {"the producer": "InvalidProducerEpochException", "state": "Empty"},
        "credentials": {"the same": True, "deleted again": "ResourceNotFoundException"},
        "quotas": "InvalidRequestException",
        "features": {
            "finalized": [
                *("eligible.leader.replicas.version", "group.version", "metadata.version", "share.version"),
                *("streams.version", "transaction.version"),
            ],
            "supported": True,
        },
        "quorum": True,
    },
    "Consumers": {
        "Range": {"described": ["Classic", "range", 2], **_SHARED},
        "RoundRobin": {"described": ["Classic", "roundrobin", 2], **_SHARED},
        "Sticky": {"described": ["Classic", "sticky", 2], **_SHARED},
        "CooperativeSticky": {"described": ["Classic", "cooperative-sticky", 2], **_SHARED},
        "KIP-848 uniform": {"described": ["Consumer", "uniform", 2], **_SHARED},
        "KIP-848 range": {"described": ["Consumer", "range", 2], **_SHARED},
        "static member, classic": [True, True],
        "static member, consumer": [True, True],
        "pattern of the client": 5,
        "pattern of the broker": 5,
        "positions": {
            "partitions": 4,
            "bounds": [0, 10],
            "at a time": 3,
            "after all": "null",
            "after a seek": 7,
            "paused": 0,
            "resumed": 8,
            "committed": [5, "note"],
            "at the end": 10,
            "out of range": 0,
        },
        "open transactions": {"ends": [0, 2], "while open": 0, "after the abort": "plain"},
        "migration": "Consumer",
    },
}
"""The expected facts of each program, by feature: Kafka's own error classes, states and numbers."""

CASES: Final = [(program, feature) for program, features in EXPECTED.items() for feature in features]


@cache
def found(place: Place, program: str) -> Mapping[str, Any]:
    """Run a program once. Return its output by feature."""
    try:
        command = java(program)
    except ProgramUnavailableError as error:
        not_run(str(error))
    return {line["feature"]: line for line in lines_of([*command, place.servers, new_name(program.lower())])}


@pytest.mark.parametrize(("program", "feature"), CASES)
def test_a_feature(place: Place, program: str, feature: str) -> None:
    assert found(place, program)[feature] == {"feature": feature, "facts": EXPECTED[program][feature]}


@pytest.mark.parametrize("program", EXPECTED)
def test_every_feature_of_a_program_is_expected(embedded: Place, program: str) -> None:
    assert set(found(embedded, program)) == set(EXPECTED[program])
