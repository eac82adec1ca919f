"""A Streams application runs each task once, despite changes of instances, protocols and coordinators."""

from __future__ import annotations

import pytest

from tests.groups.streams.histories import CASTS, History


@pytest.mark.parametrize("stateful", [False, True], ids=["plain", "stateful"])
@pytest.mark.parametrize("cast", CASTS)
@pytest.mark.parametrize("seed", range(4))
def test_a_disturbed_application_settles(cast: str, stateful: bool, seed: int) -> None:
    History(seed, stateful=stateful, kinds=CASTS[cast]).play()


def test_histories_go_through_migrations_in_both_directions() -> None:
    seen = set()
    for seed in range(4):
        history = History(seed, stateful=False, kinds=CASTS["both"])
        history.play()
        seen |= history.changes
    assert seen == {("classic", "streams"), ("streams", "classic")}
