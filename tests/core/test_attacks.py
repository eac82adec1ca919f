"""Python code cannot crash the process through the C core, or make the core access memory out of bounds."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kafka_msgs._backend import backend

pytestmark = pytest.mark.skipif(backend() != "c", reason="another backend was chosen")
TIME = 300


def run(*arguments: str) -> None:
    """Run a module in a subprocess, which must exit normally."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", *arguments], capture_output=True, text=True, timeout=TIME
    )
    assert (done.returncode, done.stdout[-5:]) == (0, "done\n"), (done.stdout[-2000:], done.stderr[-3000:])


def test_what_used_to_end_the_process_is_refused() -> None:
    run("tests.core.cases")


@pytest.mark.parametrize("seed", range(2))
def test_odd_arguments_are_survived(seed: int) -> None:
    """For longer runs use ``python -m tests.core.attack SEED ROUNDS``. ``make sanitize`` runs this with sanitizers."""
    run("tests.core.attack", str(seed), os.environ.get("KAFKA_MSGS_ATTACKS", "40"))
