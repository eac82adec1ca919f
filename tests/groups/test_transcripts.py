"""The library's coordinator returns the same results as Kafka's coordinator for the recorded scripts."""

from __future__ import annotations

import pytest

from tests.coordinator.comparison import differences
from tests.coordinator.player import play
from tests.coordinator.transcripts import NAMES, read


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_is_repeated(name: str) -> None:
    commands, recorded = read(name)
    found = play(commands)
    assert [differences(*pair) for pair in zip(recorded, found, strict=True)] == [[]] * len(commands)
