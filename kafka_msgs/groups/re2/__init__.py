"""Regular expressions of topics in RE2's syntax, for all groups that subscribe by them.

``parser`` parses an expression, and ``nfa`` matches names with it.
"""

from __future__ import annotations

from kafka_msgs.groups.re2.nfa import InvalidRegexError
from kafka_msgs.groups.re2.parser import compile_regex

__all__ = ["InvalidRegexError", "compile_regex"]
