"""Every requirement of this project's source documents has a test with its number in the name.

The documents are KIP-88 with its drafts (A to C), the 0.9 design of the consumer (D), and KIP-1071 (E to J). Y lists
the questions they leave open. The number comes first: ``test_a4_...``, or ``test_c2_c3_...`` for a test of two. Numbers
of the group coordinator (G) include a section: ``test_g15_7_...``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
NUMBERED: Final = re.compile(r"^ *(?:async )?def test_((?:[a-z][0-9]+_)+)", re.MULTILINE)

NUMBERS: Final[dict[str, tuple[int, ...]]] = {
    **{
        part: tuple(range(1, last + 1)) for part, last in {"a": 20, "b": 12, "c": 12, "d": 22, "h": 19, "i": 22}.items()
    },
    "e": (12, *range(19, 24)),
    "f": (14,),
    "j": (2, 3),
    "y": tuple(range(1, 34)),
}
"""The numbers of each part: the OffsetFetch protocol, describing an empty group, the rejected drafts, the thin consumer
and its coordinator, administration of streams groups, and the commands for them. Of the messages (E), the records (F)
and data (J), only the requirements on coordinators. All open questions (Y)."""

SECTIONED: Final = re.compile(r"^ *def test_(?:[a-z][0-9]+_)*g([0-9]+)_([0-9]+)_", re.MULTILINE)

SECTIONS: Final = (12, 8, 21, 10, 11, 13, 18, 11, 3, 5, 9, 11, 10, 4, 13, 8, 2)
"""The count of numbers in each section of G: validation of requests and topologies, handling, epochs, statuses,
internal topics, assignment, reconciliation, states, static members, offsets, records, settings, metrics, migration,
other groups, errors."""

WITHOUT_A_TEST: Final[dict[str, str]] = {}
"""Untestable requirements, each with the reason."""


def test_each_requirement_has_a_test_with_its_number() -> None:
    wanted = {f"{part}{number}" for part, numbers in NUMBERS.items() for number in numbers}
    texts = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    tested = {number for text in texts for names in NUMBERED.findall(text) for number in names.rstrip("_").split("_")}
    assert wanted - tested == set(WITHOUT_A_TEST)


def test_each_requirement_of_streams_groups_has_a_test_with_its_number() -> None:
    wanted = {(section, number) for section, last in enumerate(SECTIONS, 1) for number in range(1, last + 1)}
    texts = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    tested = {(int(section), int(number)) for text in texts for section, number in SECTIONED.findall(text)}
    assert len(wanted) == 169
    assert tested == wanted
