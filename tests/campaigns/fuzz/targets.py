"""The fuzzing targets; each module defines a property of every input, and initial inputs."""

from __future__ import annotations

from typing import Final

from tests.campaigns.fuzz import columns, headers, messages, parts, records

__all__ = ["TARGETS"]

TARGETS: Final = {"messages": messages, "records": records, "columns": columns, "headers": headers, "parts": parts}
