"""Runs every test of records over every form of the loops that there is: the one in Python, and the one in C."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_msgs.records import batch, builder
from tests.support.batches import FORMS


@pytest.fixture(scope="module", params=FORMS, ids=lambda loops: loops.name, autouse=True)
def form(request: pytest.FixtureRequest) -> Iterator[object]:
    """The form under test, in the place of the one that is chosen."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (batch, builder):
            patch.setattr(module, "loops", lambda: request.param)
        yield request.param
