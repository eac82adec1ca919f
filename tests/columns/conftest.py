"""Runs the column tests with both implementations, Python and C."""

from __future__ import annotations

import pytest

from kafka_msgs.columns import decode, encode, record_tables
from tests.support.implementations import implementations, name_of


@pytest.fixture(params=implementations("kafka_msgs.columns"), ids=name_of)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> object:
    """Use the implementation under test instead of the selected one."""
    for module in (decode, encode, record_tables):
        monkeypatch.setattr(module, "_IMPLEMENTATION", request.param)
    return request.param
