"""The options of ``kafka-msgs lag``: their values, and the rules for their combination."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from attrs import frozen

from kafka_msgs.cli.durations import duration
from kafka_msgs.cli.group_commands.name_filter import NameFilter, regex

__all__ = ["LagOptions", "lag_options"]

F = TypeVar("F", bound=Callable[..., Any])
_LOOPBACK: Final = "127.0.0.1"
_LAST_PORT: Final = 65535


@frozen(kw_only=True)
class LagOptions:
    """The option values. Times are in seconds; ``listen`` is a host and a port."""

    requested: tuple[str, ...]
    groups: tuple[Callable[[str], bool], ...]
    exclude_groups: tuple[Callable[[str], bool], ...]
    topics: tuple[Callable[[str], bool], ...]
    exclude_topics: tuple[Callable[[str], bool], ...]
    end_offsets: Path | None
    records_only: bool
    status: bool
    watch: float | None
    rounds: int | None
    listen: tuple[str, int] | None
    refresh: float
    cluster_name: str | None
    max_lag: int | None
    max_seconds: float | None
    prometheus: bool

    @property
    def group_filter(self) -> NameFilter:
        """The selection of groups by regular expressions."""
        return NameFilter(self.groups, self.exclude_groups)

    @property
    def topic_filter(self) -> NameFilter:
        """The selection of topics by regular expressions."""
        return NameFilter(self.topics, self.exclude_topics)

    def select_groups(self, names: Iterable[str]) -> list[str]:
        """Return the selected ones of the existing groups. Raises ``click.ClickException`` for an unknown name."""
        existing = list(names)
        for name in self.requested:
            if name not in existing:
                raise click.ClickException(f"there is no group {name!r}")
        return [name for name in self.requested or existing if self.group_filter.accepts(name)]

    @property
    def _has_limits(self) -> bool:
        return any(each is not None for each in (self.max_lag, self.max_seconds, self.rounds))

    def check(self, *, from_files: bool, with_report: bool) -> None:
        """Raise ``click.UsageError`` for an invalid combination."""
        rules = (
            (from_files and self.watch is not None, "--watch needs --bootstrap-server"),
            (from_files and self.listen is not None, "--listen needs --bootstrap-server"),
            (from_files and self.max_seconds is not None, "--max-seconds needs --bootstrap-server"),
            (with_report and not from_files, "--report needs --log-dirs"),
            (self.end_offsets is not None and not from_files, "--end-offsets needs --log-dirs"),
            (self.rounds is not None and self.watch is None, "--rounds needs --watch"),
            (self.max_seconds is not None and self.records_only, "--max-seconds excludes --records-only"),
            (self.listen is not None and self.watch is not None, "expected --listen or --watch, not both"),
            (self.listen is not None and self._has_limits, "--listen excludes --max-lag, --max-seconds and --rounds"),
            (
                self.status and not from_files and self.watch is None and self.listen is None,
                "--status needs a history: --log-dirs, --watch or --listen",
            ),
        )
        for is_broken, message in rules:
            if is_broken:
                raise click.UsageError(message)


def _address(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, int] | None:
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    if not port.isdecimal() or int(port) > _LAST_PORT:
        raise click.BadParameter(f"{value!r} is not [HOST]:PORT")
    return host.strip("[]") or _LOOPBACK, int(port)


def _pattern_option(flag: str, help_text: str) -> Callable[[F], F]:
    return click.option(flag, metavar="REGEX", multiple=True, type=regex, help=f"{help_text} May be repeated.")


_OPTIONS: Final[Sequence[Callable[[Any], Any]]] = (
    _pattern_option("--groups", "Only groups with a matching name."),
    _pattern_option("--exclude-groups", "Without groups with a matching name."),
    _pattern_option("--topics", "Only topics with a matching name."),
    _pattern_option("--exclude-topics", "Without topics with a matching name."),
    click.option(
        "--end-offsets",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Output of kafka-get-offsets; default: the ends of the partitions in the log directories.",
    ),
    click.option("--records-only", is_flag=True, help="Do not read records to determine their age."),
    click.option(
        "--status", is_flag=True, help="Add the status by the window of the latest commits: OK, WARNING, STALLED, ..."
    ),
    click.option("--watch", metavar="TIME", type=duration("s", min_seconds=0.1), help="Repeat every TIME, such as 5s."),
    click.option("--rounds", metavar="N", type=click.IntRange(min=1), help="With --watch, stop after N rounds."),
    click.option(
        "--listen",
        metavar="[HOST]:PORT",
        callback=_address,
        help="Serve /metrics and /healthz over HTTP until interrupted. The default host is 127.0.0.1.",
    ),
    click.option(
        "--refresh",
        metavar="TIME",
        type=duration("s", min_seconds=0.1),
        default="30s",
        show_default=True,
        help="With --listen, the time between two refreshes.",
    ),
    click.option("--cluster-name", metavar="NAME", help="Label cluster of the metrics; default: the cluster id."),
    click.option("--max-lag", metavar="N", type=click.IntRange(min=0), help="Exit with status 3 if a lag exceeds N."),
    click.option(
        "--max-seconds",
        metavar="TIME",
        type=duration("s"),
        help="Exit with status 3 if the oldest unread record has waited longer, such as 5m.",
    ),
)


def lag_options(command: F) -> F:
    """Add the options to a command, except for its source and its output."""
    decorated: Any = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: F = decorated
    return result
