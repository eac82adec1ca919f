"""The selection of groups and topics by regular expressions that names must match, or must not match.

The expressions have RE2's syntax, like subscriptions of consumers, and match whole names in linear time.
"""

from __future__ import annotations

from collections.abc import Callable

import click
from attrs import frozen

__all__ = ["NameFilter", "regex"]


@frozen
class NameFilter:
    """Accepts names that match one of ``included``, or any name if it is empty, and none of ``excluded``."""

    included: tuple[Callable[[str], bool], ...] = ()
    excluded: tuple[Callable[[str], bool], ...] = ()

    def accepts(self, name: str) -> bool:
        """Return whether the name is selected."""
        is_included = not self.included or any(matches(name) for matches in self.included)
        return is_included and not any(matches(name) for matches in self.excluded)


def regex(text: str) -> Callable[[str], bool]:
    """Return a predicate for whole names; raises ``click.BadParameter``. It is the click type of pattern options."""
    from kafka_msgs.groups.re2 import InvalidRegexError, compile_regex

    try:
        return compile_regex(text)
    except InvalidRegexError as error:
        raise click.BadParameter(f"{text!r} is not a regular expression: {error}") from None
