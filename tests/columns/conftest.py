"""Runs the tests of columns over both implementations, the one in Python and the one in C."""

from __future__ import annotations

import pytest

from kafka_msgs.columns import decode, encode, record_tables
from tests.support.implementations import implementations, name_of


@pytest.fixture(params=implementations("kafka_msgs.columns"), ids=name_of)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> object:
    """The implementation under test, in the place of the one that is chosen."""
    for module in (decode, encode, record_tables):
        monkeypatch.setattr(module, "_IMPLEMENTATION", request.param)
    return request.param
