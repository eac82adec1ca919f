"""Counts the coverage of scripts: requests by API and version, responses by API and error, relaxations by use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import Factory, define

from kafka_msgs import messages
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.error_codes import ErrorCode
from tests.broker.differential.known_differences import RELAXATIONS, Relaxation
from tests.broker.differential.tested_cluster import Command, Result

__all__ = ["Tally", "api_name", "errors_of"]


def api_name(key: ApiKey) -> str:
    """Return the name of an API as used in message names."""
    plain = key.name.replace("_", "").lower()
    return next(each[:-7] for each in dir(messages) if each.lower() == f"{plain}request")


def errors_of(result: Any) -> set[int]:
    """Return all error codes in a result."""
    return set(_errors(result))


def _errors(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name.endswith("rrorCode"):
                yield each
            else:
                yield from _errors(each)
    elif isinstance(value, list):
        for each in value:
            yield from _errors(each)


@define
class Tally:
    """The coverage of some scripts, by the responses of the real cluster."""

    scripts: int = 0
    commands: int = 0
    versions: Counter[tuple[str, int]] = Factory(Counter)
    errors: Counter[tuple[str, str]] = Factory(Counter)
    fates: Counter[str] = Factory(Counter)
    relaxed: Counter[Relaxation] = Factory(Counter)

    def add(self, command: Command, result: Result) -> None:
        """Count a command."""
        self.commands += 1
        api = command.get("api", "raw")
        if api != "raw":
            self.versions[api, command["version"]] += 1
        self.fates.update(each for each in result if each != "correlation")
        self.errors.update((api, ErrorCode(each).name) for each in errors_of(result))
        if "closed" in result:
            self.errors[api, "(closed)"] += 1

    def report(self, offered: Mapping[str, tuple[int, int]]) -> str:
        """Return the counts as text."""
        pairs = [(api, each) for api, (low, high) in offered.items() for each in range(low, high + 1)]
        missing = [f"{api} {version}" for api, version in pairs if not self.versions[api, version]]
        lines = [f"{self.commands} commands in {self.scripts} scripts; " + _counts(self.fates)]
        lines += [f"{len(pairs) - len(missing)} of {len(pairs)} offered versions; not drawn: {', '.join(missing)}"]
        lines += [f"{len(self.errors)} pairs of api and error:"]
        for api in sorted({name for name, _ in self.errors}):
            lines.append(f"  {api}: " + _counts({error: n for (name, error), n in self.errors.items() if name == api}))
        lines += ["relaxations:"]
        lines += [f"  {self.relaxed[each]} {each.apis} {each.path}: {each.reason}" for each in RELAXATIONS]
        return "\n".join(lines)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in Counter(counts).most_common())
