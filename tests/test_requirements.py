"""Every requirement of the documents that this project started from has a test with its number in the name.

The documents are KIP-88 with its drafts (A to C), the 0.9 design of the consumer (D), and KIP-1071 (E, F, H, I, J). Y
has what they leave open. The number comes first: ``test_a4_...``, or ``test_c2_c3_...`` for a test of two.
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
    "e": (12, 19, 20, 21, 22),
    "f": (14,),
    "j": (2, 3),
    "y": (*range(1, 20), *range(25, 33)),
}
"""The numbers of each part: the protocol of OffsetFetch, describing an empty group, the rejected drafts, the thin
consumer and its coordinator, administration of streams groups, and the commands for them. Of the messages (E), the
records (F), data (J) and what is left open (Y): what concerns coordinators."""

WITHOUT_A_TEST: Final[dict[str, str]] = {}
"""Requirements that no test can show, each with the reason."""


def test_each_requirement_has_a_test_with_its_number() -> None:
    wanted = {f"{part}{number}" for part, numbers in NUMBERS.items() for number in numbers}
    texts = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    tested = {number for text in texts for names in NUMBERED.findall(text) for number in names.rstrip("_").split("_")}
    assert wanted - tested == set(WITHOUT_A_TEST)
