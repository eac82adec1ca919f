"""The tables of the campaign: recovery times and totals of all clients side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Final

from attrs import asdict
from rich.console import Console
from rich.table import Table

from tests.campaigns.soak.campaign import Outcome, Stall
from tests.campaigns.soak.clients import OURS

__all__ = ["broken_promises", "print_outcome", "slower_than_java"]

_MARGIN: Final = 0.5
"""The seconds by which a client may recover later than Java's client."""


def print_outcome(console: Console, outcome: Outcome) -> None:
    """Print the tables of a run, and the broken promises and errors of every client."""
    clients = list(outcome.totals)
    for title, value in (("acknowledgements", _writes), ("reads", _reads)):
        console.print(_recovery_table(outcome, clients, title, value))
    console.print(_totals_table(outcome))
    for kind, found in (("broken promise", outcome.broken), ("error", outcome.errors)):
        for client, texts in found.items():
            for text in texts:
                console.print(f"{client}: {kind}: {text}", markup=False)


def broken_promises(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the broken promises of this library's clients."""
    return [
        f"{outcome.cluster}: {client}: {text}"
        for outcome in outcomes
        for client, texts in outcome.broken.items()
        if client in OURS
        for text in texts
    ]


def slower_than_java(outcome: Outcome) -> list[str]:
    """Return the faults after which a client of this library recovered later than Java's client, by the median."""
    return [
        f"{outcome.cluster}: {fault}: {client} {title} after {ours:.1f} s, {peer} after {theirs:.1f} s"
        for title, value in (("writes", _writes), ("reads", _reads))
        for fault in _faults(outcome)
        for client in OURS
        for peer in ["java-transactional" if client == "ours-transactional" else "java"]
        if {client, peer} <= outcome.totals.keys()
        and (ours := _median(outcome, fault, client, value))
        > (theirs := _median(outcome, fault, peer, value)) + _MARGIN
    ]


def _recovery_table(outcome: Outcome, clients: list[str], title: str, value: Callable[[Stall], float]) -> Table:
    table = Table(title=f"{outcome.cluster}: longest pause of {title} around a fault, seconds, median (worst)")
    table.add_column("fault")
    table.add_column("n", justify="right")
    for client in clients:
        table.add_column(client, justify="right")
    for fault in _faults(outcome):
        cells = [_values(outcome, fault, client, value) for client in clients]
        table.add_row(fault, str(len(cells[0])), *(f"{median(each):.1f} ({max(each):.1f})" for each in cells))
    return table


def _totals_table(outcome: Outcome) -> Table:
    table = Table(title=f"{outcome.cluster}: records of {outcome.seconds:.0f} s with faults")
    table.add_column("client")
    names = list(asdict(next(iter(outcome.totals.values()))))
    for name in names:
        table.add_column(name, justify="right")
    for client, totals in outcome.totals.items():
        table.add_row(client, *(f"{count:,}" for count in asdict(totals).values()))
    return table


def _faults(outcome: Outcome) -> list[str]:
    return sorted({each.fault for each in outcome.stalls})


def _values(outcome: Outcome, fault: str, client: str, value: Callable[[Stall], float]) -> list[float]:
    return [value(each) for each in outcome.stalls if each.fault == fault and each.client == client]


def _median(outcome: Outcome, fault: str, client: str, value: Callable[[Stall], float]) -> float:
    return median(_values(outcome, fault, client, value))


def _writes(stall: Stall) -> float:
    return stall.writes


def _reads(stall: Stall) -> float:
    return stall.reads
