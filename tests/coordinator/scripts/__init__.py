"""Random scripts for coordinators, by protocol: blind ones, and ones steered by simulated clients."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.coordinator.script_state import Script
from tests.coordinator.scripts.guided_clients import STEERED, steered
from tests.coordinator.scripts.random_requests import BLIND, blind

__all__ = ["KINDS", "PROTOCOLS", "random_script"]

PROTOCOLS: Final = tuple(BLIND)
KINDS: Final = ("blind", "steered")

assert tuple(STEERED) == PROTOCOLS


def random_script(protocol: str, kind: str, seed: str) -> Script:
    """Return the script of a seed, with about 200 commands."""
    random = Random(f"{protocol} {kind} {seed}")
    return blind(protocol, random, 4) if kind == "blind" else steered(protocol, random, 100)
