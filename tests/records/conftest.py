"""Runs every records test over both implementations, Python and C."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_msgs.records import batch, builder
from tests.support.implementations import implementations, name_of


@pytest.fixture(scope="module", params=implementations("kafka_msgs.records"), ids=name_of, autouse=True)
def implementation(request: pytest.FixtureRequest) -> Iterator[object]:
    """The implementation under test, which replaces the selected one."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (batch, builder):
            patch.setattr(module, "_IMPLEMENTATION", request.param)
        yield request.param
