"""Regular expressions of topics in RE2's syntax, for all groups that subscribe by them.

``syntax`` reads an expression into the form of ``tree``, and ``machine`` matches names with it.
"""

from __future__ import annotations

from kafka_msgs.groups.re2.machine import compile_regex
from kafka_msgs.groups.re2.syntax import InvalidRegexError

__all__ = ["InvalidRegexError", "compile_regex"]
