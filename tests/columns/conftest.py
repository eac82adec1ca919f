"""Runs every test of columns over every form that can run here."""

from __future__ import annotations

import pytest

from kafka_msgs.columns import switch
from tests.support.columns import FORMS


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a form, which runs for the time of the test whatever the environment chose."""
    name = str(request.param)
    monkeypatch.setattr(switch, "backend", lambda: name)
    return name
