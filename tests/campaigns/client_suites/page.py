"""Renders the results in ``docs/client-suites.jsonl`` as the tables of ``docs/reference/broker-clients.md``.

    python -m tests.campaigns.client_suites.page

Each line of the file is one run of a suite with one broker (``--save``). The page shows the last run of each. A test
compares the page with the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.campaigns.client_suites.known_failures import REMARKS
from tests.campaigns.client_suites.outcomes import FAILED, PASSED, SKIPPED, Run, differences

__all__ = ["PAGE", "RESULTS", "main", "written"]

_DOCS: Final = Path(__file__).parents[3] / "docs"
RESULTS: Final = _DOCS / "client-suites.jsonl"
PAGE: Final = _DOCS / "reference" / "broker-clients.md"

_NAMED: Final = 3
"""The maximum number of named tests for each kind of difference with the same reason."""

_REGION: Final = re.compile(r"(<!-- suites: (?P<name>\w+) -->\n).*?(<!-- end of suites -->)", re.DOTALL)


def main() -> None:
    """Update the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), runs()), encoding="utf-8")


def runs() -> dict[str, dict[str, Run]]:
    """Return the last run of each suite with each broker, by suite and broker."""
    found: dict[str, dict[str, Run]] = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines():
        run = Run.from_json(line)
        found.setdefault(run.suite, {})[run.broker] = run
    return found


def written(page: str, results: Mapping[str, Mapping[str, Run]]) -> str:
    """Return the page with updated tables."""

    def region(match: re.Match[str]) -> str:
        return f"{match[1]}{_TABLES[match['name']](results)}{match[3]}"

    return _REGION.sub(region, page)


def _counts(results: Mapping[str, Mapping[str, Run]]) -> str:
    head = ("suite", "version", *(f"{who}: {what}" for who in ("Kafka", "ours") for what in (PASSED, FAILED, SKIPPED)))
    return _markdown(head, map(_counted, results.values()))


def _counted(by_broker: Mapping[str, Run]) -> list[object]:
    both = by_broker["kafka"], by_broker["embedded"]
    counts = [run.count(verdict) for run in both for verdict in (PASSED, FAILED, SKIPPED)]
    part = "" if all(run.ended for run in both) else ", in part"
    return [f"{both[0].suite}{part}", both[0].version, *counts]


def _others(results: Mapping[str, Mapping[str, Run]]) -> str:
    return _markdown(("suite", "test", "Kafka", "ours", "why"), _rows(results))


def _rows(results: Mapping[str, Mapping[str, Run]]) -> Iterator[list[object]]:
    for suite, by_broker in results.items():
        alike: dict[tuple[str, str, str], list[str]] = {}
        for each in differences(by_broker["kafka"], by_broker["embedded"], REMARKS.get(suite, {})):
            kind = each.real.verdict, each.ours.verdict, each.why or each.ours.reason or each.real.reason
            alike.setdefault(kind, []).append(f"`{each.test.rpartition('::')[2]}`")
        for (real, ours, why), names in alike.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield [suite, ", ".join(names[:_NAMED]) + more, real, ours, why]


def _markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


_TABLES: Final = {"counts": _counts, "others": _others}


if __name__ == "__main__":
    main()
