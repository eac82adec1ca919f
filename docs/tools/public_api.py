"""Lists every public name of the library in ``docs/reference/public-api.md``.

    python docs/tools/public_api.py [--check]

The public names are those in ``__all__`` of the modules below. A change of the page is a change of the public API:
review it, and describe it in the changelog. With ``--check`` nothing is written, and the exit status is 1 when the page
is out of date.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from kafka_msgs import messages
from kafka_msgs_generator.atomic_write import write_atomically

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "reference" / "public-api.md"

MODULES: Final = (
    "kafka_msgs",
    "kafka_msgs.errors",
    "kafka_msgs.api_keys",
    "kafka_msgs.catalog",
    "kafka_msgs.enums",
    "kafka_msgs.error_codes",
    "kafka_msgs.message",
    "kafka_msgs.schema",
    "kafka_msgs.schema_compiler",
    "kafka_msgs.versioned",
    "kafka_msgs.versions",
    "kafka_msgs.encodability",
    "kafka_msgs.message_guesses",
    "kafka_msgs.upgrade",
    "kafka_msgs.upgrade.client_usage",
    "kafka_msgs.upgrade.cluster_files",
    "kafka_msgs.upgrade.feature_levels",
    "kafka_msgs.upgrade.release_versions",
    "kafka_msgs.upgrade.reports",
    "kafka_msgs.codec",
    "kafka_msgs.codec.reference",
    "kafka_msgs.wire",
    "kafka_msgs.records",
    "kafka_msgs.columns",
    "kafka_msgs.log",
    "kafka_msgs.log.faults",
    "kafka_msgs.log.file_scan",
    "kafka_msgs.log.log_directory",
    "kafka_msgs.log.summary",
    "kafka_msgs.log.writers.segment_writer",
    "kafka_msgs.internal_topics.batch_decoding",
    "kafka_msgs.internal_topics.consumer_protocol",
    "kafka_msgs.internal_topics.records",
    "kafka_msgs.internal_topics.remote_log",
    "kafka_msgs.internal_topics.replay",
    "kafka_msgs.internal_topics.streams_metadata",
    "kafka_msgs.registry",
    "kafka_msgs.client",
    "kafka_msgs.client.consumer",
    "kafka_msgs.client.producer",
    "kafka_msgs.client.streams",
    "kafka_msgs.admin",
    "kafka_msgs.groups.config",
    "kafka_msgs.groups.coordinator",
    "kafka_msgs.groups.runtime.memory_log",
    "kafka_msgs.groups.metrics",
    "kafka_msgs.groups.page",
    "kafka_msgs.groups.runtime.output",
    "kafka_msgs.groups.profiles",
    "kafka_msgs.groups.runtime.record_batches",
    "kafka_msgs.groups.request_context",
    "kafka_msgs.groups.topics_image",
    "kafka_msgs.broker",
    "kafka_msgs.broker.faults",
    "kafka_msgs.testing",
    "kafka_msgs.capture",
    "kafka_msgs.tap",
    "kafka_msgs.redaction",
    "kafka_msgs.samples",
    "kafka_msgs.columns.log_table",
    "kafka_msgs.log.tiered_partitions",
    "kafka_msgs.analysis.group_state_job",
    "kafka_msgs.engines.frames",
    "kafka_msgs.engines.job",
    "kafka_msgs.engines.local",
    "kafka_msgs.engines.record_files",
    "kafka_msgs.engines.replicas",
    "kafka_msgs.report",
    "kafka_msgs.report.json_report",
    "kafka_msgs.tables",
    "kafka_msgs.spark",
    "kafka_msgs.spark.kafka_connector",
    "kafka_msgs.spark.live_metrics",
)
"""The public modules. A module that a page imports is one of them; messages are public in any case."""

_HEAD: Final = f"""---
search:
  exclude: true
---

# Public API

These names follow the [compatibility policy](compatibility.md). The {len(messages.__all__)} classes in
`kafka_msgs.messages` are also public, and names of `kafka_msgs`. `python docs/tools/public_api.py` writes this page.
"""


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` return 1 if it is not up to date."""
    text = "\n".join([_HEAD, *_sections()])
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    if "--check" in arguments:
        print(f"{PAGE.relative_to(ROOT)}: not up to date; run python docs/tools/public_api.py")
        return 1
    write_atomically(PAGE, text)
    return 0


def _sections() -> Iterator[str]:
    for package in MODULES:
        module = import_module(package)
        names = [name for name in module.__all__ if package != "kafka_msgs" or name not in messages.__all__]
        if names:
            yield f"## `{package}`\n\n| name | kind | meaning |\n|---|---|---|"
            yield from (_row(name, getattr(module, name)) for name in sorted(names))
            yield ""


def _row(name: str, value: Any) -> str:
    return f"| `{name}` | {_kind(value)} | {_summary(value)} |"


def _kind(value: Any) -> str:
    if inspect.ismodule(value):
        return "module"
    if not inspect.isclass(value):
        return "function" if callable(value) and inspect.isroutine(value) else "value"
    return "exception" if issubclass(value, BaseException) else "class"


def _summary(value: Any) -> str:
    """Return the first sentence of the docstring of a class, function or module."""
    documented = inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)
    text = (inspect.getdoc(value) or "") if documented else ""
    first = " ".join(text.partition("\n\n")[0].split())
    return first.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
