"""What can be fuzzed; each module says what must hold for every input, and where inputs start from."""

from __future__ import annotations

from typing import Final

from tests.campaigns.fuzz import columns, headers, messages, parts, records

__all__ = ["TARGETS"]

TARGETS: Final = {"messages": messages, "records": records, "columns": columns, "headers": headers, "parts": parts}
