"""Upgrade checks as rows and as reports: the same columns in the terminal, in JSON and on the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from kafka_msgs.report import Report, Table
from kafka_msgs.upgrade.client_check import ApiSupport, is_documented
from kafka_msgs.upgrade.client_usage import FormatUse, VersionUse
from kafka_msgs.upgrade.release_versions import KafkaRelease, api_name
from kafka_msgs.upgrade.upgrade_check import UpgradeCheck, Verdict

__all__ = ["CLIENT_COLUMNS", "FINDING_COLUMNS", "client_report", "client_rows", "finding_rows", "upgrade_report"]

FINDING_COLUMNS: Final = (
    "verdict", "client", "software", "address", "subject", "version", "count", "first", "last", "reason",
)  # fmt: skip
"""The columns of findings. For a client, ``subject`` is an API or a message format; otherwise it is a fact of files."""

CLIENT_COLUMNS: Final = ("verdict", "apiKey", "api", "client", "broker", "common", "neededBy")
"""The columns of the comparison of a client release with a broker release."""

_MICROS: Final = 1000

Row = Mapping[str, Any]


def finding_rows(check: UpgradeCheck, *, everything: bool = False) -> Iterator[Row]:
    """Yield the findings as rows. Supported versions, formats and features are included with ``everything``.

    ``first`` and ``last`` are in milliseconds since the epoch.
    """
    for each in check.versions:
        if everything or each.verdict is not Verdict.OK:
            yield _use(each.verdict, each.use, api_name(each.use.api_key), each.use.version, each.reason)
    for found in check.formats:
        if everything or found.verdict is not Verdict.OK:
            yield _use(found.verdict, found.use, "message format", found.use.magic, found.reason)
    for file in check.files:
        if everything or file.verdict is not Verdict.OK:
            yield dict.fromkeys(FINDING_COLUMNS) | {
                "verdict": file.verdict.value,
                "subject": file.subject,
                "version": file.value,
                "first": file.first_ms,
                "last": file.last_ms,
                "reason": file.reason,
            }


def _use(verdict: Verdict, use: VersionUse | FormatUse, subject: str, version: int, reason: str) -> Row:
    return {
        "verdict": verdict.value,
        "client": use.client.client_id,
        "software": use.client.software,
        "address": use.client.host,
        "subject": subject,
        "version": version,
        "count": use.count,
        "first": use.first_us // _MICROS,
        "last": use.last_us // _MICROS,
        "reason": reason,
    }


def client_rows(supports: Sequence[ApiSupport]) -> Iterator[Row]:
    """Yield the support of each API as rows."""
    for each in supports:
        verdict = Verdict.BLOCKED if each.blocked else Verdict.OK if each.common is not None else Verdict.NOTE
        yield {
            "verdict": verdict.value,
            "apiKey": each.api_key,
            "api": each.api,
            "client": str(each.client),
            "broker": str(each.broker),
            "common": each.common,
            "neededBy": list(each.needed_by),
        }


def upgrade_report(check: UpgradeCheck) -> Report:
    """Return the report of an upgrade check: problems first, then everything that was seen."""
    kinds = {"count": "number", "first": "time", "last": "time", "version": "text"}
    problems, everything = list(finding_rows(check)), list(finding_rows(check, everything=True))
    sections = [
        _table("Blocking and unclear", problems, FINDING_COLUMNS, kinds),
        _table("Everything that was seen", everything, FINDING_COLUMNS, kinds),
        Table("Not examined", ("reason",), tuple((each,) for each in check.incomplete)),
    ]
    return Report(f"Upgrade to Kafka {check.target}", tuple(sections))


def client_report(supports: Sequence[ApiSupport], client: KafkaRelease, broker: KafkaRelease) -> Report:
    """Return the report of a client release with a broker release."""
    table = _table("APIs", list(client_rows(supports)), CLIENT_COLUMNS, {"apiKey": "name", "common": "name"})
    note = "" if is_documented(client, broker) else "Kafka does not document support for this pair (KIP-896)"
    return Report(f"Clients of Kafka {client} with brokers of Kafka {broker}", (evolve(table, note=note),))


def _table(title: str, rows: Sequence[Row], columns: Sequence[str], kinds: Mapping[str, Any]) -> Table:
    return Table(title, tuple(columns), tuple(tuple(row[name] for name in columns) for row in rows), kinds=kinds)
