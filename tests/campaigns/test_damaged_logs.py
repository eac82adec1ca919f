"""A small part of the damaged logs campaign; ``python -m tests.campaigns.damaged_logs`` runs longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.damaged_logs import run_case, seeds

SEEDS = seeds()


def test_damage_starts_from_files_of_every_kind() -> None:
    kinds = {Path(name).suffix or Path(name).name for name in SEEDS}
    assert kinds >= {
        ".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot", ".metadata", ".properties",
        "leader-epoch-checkpoint", "recovery-point-offset-checkpoint", "quorum-state", ".kafka_cleanshutdown",
    }  # fmt: skip


@pytest.mark.parametrize("start", range(0, 1000, 100))
def test_whatever_is_in_a_file_is_read_to_its_end(tmp_path: Path, start: int) -> None:
    for number in range(start, start + 100):
        run_case(SEEDS, number, tmp_path)
