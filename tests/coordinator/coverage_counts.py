"""Counts the coverage of histories: commands, responses by API and error code, records by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from attrs import Factory, define

from kafka_msgs.error_codes import ErrorCode
from tests.coordinator.history import History
from tests.coordinator.request_bodies import versions_of

__all__ = ["Tally"]


@define
class Tally:
    """The coverage of some histories."""

    scripts: int = 0
    commands: Counter[str] = Factory(Counter)
    """By operation."""
    answers: Counter[tuple[str, str]] = Factory(Counter)
    """By API and error. A response with several errors counts for each of them."""
    versions: Counter[tuple[str, int]] = Factory(Counter)
    """Requests by API and version."""
    records: Counter[str] = Factory(Counter)
    """By type."""
    timers: int = 0
    """The number of expired timers."""

    def add(self, history: History) -> None:
        """Count a history."""
        self.scripts += 1
        self.commands.update(command["op"] for command in history.commands)
        requests = [command for command in history.commands if command["op"] == "request"]
        self.versions.update((command["api"], command["version"]) for command in requests)
        apis = {command["as"]: command["api"] for command in requests}
        for result in history.results:
            self.records.update(record.get("type", "marker") for record in result.get("records", ()))
            self.timers += len(result.get("expired", ()))
            for answer in result.get("answers", ()):
                errors = set(_errors(answer.get("body", answer)))
                self.answers.update((apis[answer["to"]], ErrorCode(error).name) for error in errors)

    def report(self) -> str:
        """Return the counts as text."""
        total = sum(self.commands.values())
        lines = [f"{total} commands in {self.scripts} scripts, {self.timers} timers expired"]
        lines += ["commands: " + ", ".join(f"{op} {count}" for op, count in self.commands.most_common())]
        lines += ["records: " + ", ".join(f"{name} {count}" for name, count in self.records.most_common())]
        apis = sorted({api for api, _ in self.versions})
        missing = [f"{api} {each}" for api in apis for each in versions_of(api) if not self.versions[api, each]]
        fewest = min(self.versions.items(), key=lambda item: item[1], default=(("", 0), 0))
        lines += [
            f"{len(self.versions)} versions of {len(apis)} apis, the rarest {fewest[0][0]} {fewest[0][1]} "
            f"{fewest[1]} times; not drawn: {', '.join(missing) or 'none'}"
        ]
        errors = {error for _, error in self.answers}
        lines += [f"{len(errors)} error codes: {', '.join(sorted(errors))}"]
        lines += [f"{len(self.answers)} pairs of api and error:"]
        for api in apis:
            of_api = Counter({error: count for (name, error), count in self.answers.items() if name == api})
            lines.append(f"  {api}: " + ", ".join(f"{error} {count}" for error, count in of_api.most_common()))
        return "\n".join(lines)


def _errors(body: Any) -> Iterator[int]:
    if isinstance(body, dict):
        for name, value in body.items():
            if name == "errorCode":
                yield value
            else:
                yield from _errors(value)
    elif isinstance(body, list):
        for element in body:
            yield from _errors(element)
