"""Imports of older releases, verified by those releases; ``tests.campaigns.older_releases`` covers all of them."""

from __future__ import annotations

import pytest

from tests.campaigns.older_releases import differences_of

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("release", ["2.2.2", "2.8.2"])
def test_a_release_reads_and_writes_as_we_do_by_its_definitions(release: str) -> None:
    assert list(differences_of(release, 2)) == []
