"""The numbered rules for the evolution of definitions, and the differences from Kafka's own checker.

E1-E22 are the rules of Kafka's schema checker (``org.apache.kafka.message.checker``) and of the guide to its message
format; E25 and E26 are additions. The table is data for the command, the documentation and the tests; ``evolution``
applies the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["EVOLUTION_DEVIATIONS", "EVOLUTION_RULES"]

EVOLUTION_RULES: Final[Mapping[str, str]] = {
    "E1": "the api key stays unchanged",
    "E2": "the type of the message stays unchanged",
    "E3": "the name of the message stays unchanged",
    "E4": "a shared version stays flexible or not flexible, and keeps its header version",
    "E5": "the highest version does not decrease, and no message disappears",
    "E6": "the lowest version does not decrease: a removed version does not return",
    "E7": "old versions may be removed, and new versions added",
    "E8": "the ranges of a field overlap the versions of its message",
    "E10": "a field may get another name: names are not encoded",
    "E11": "a new field is only in new versions, at any position",
    "E12": "a tagged field may be added to existing versions, with an unused tag",
    "E13": "a field is removed only together with its versions",
    "E14": "a field stays in all shared versions; its range may end above them",
    "E15": "the first shared version of a field stays unchanged",
    "E16": "the type of a field stays unchanged, including the name of its struct",
    "E17": "the order of fields stays unchanged",
    "E18": "the default of a field stays unchanged",
    "E19": "a field can be null in the same shared versions",
    "E20": "the flexible versions of a field stay unchanged in shared versions",
    "E21": "a field keeps its tag in shared versions",
    "E22": "other facts may change: they do not affect the bytes",
    "E25": "an unstable latest version may change or disappear",
    "E26": "a message may be added",
}

EVOLUTION_DEVIATIONS: Final[Mapping[str, str]] = {
    "E4": "Kafka's checker accepts a flexible version that was not flexible",
    "E5": "Kafka's checker compares two files and cannot report a message that disappears",
    "E8": "a field that broke this rule before is not reported again",
    "E12": "Kafka's checker rejects such a field, which Kafka's guide to the format allows",
    "E13": "Kafka's checker accepts the removal of the last field",
    "E17": "Kafka's checker misses the exchange of two fields of one type, and rejects the exchange of fields without "
    "a common version",
    "E18": "values are compared: '16' equals '0x10'; Kafka's checker compares the texts",
    "E19": "Kafka's checker compares the bounds of the ranges, including versions that are not shared",
    "E21": "Kafka's checker does not compare tags",
    "E25": "Kafka's checker does not consider whether a version is stable",
}
