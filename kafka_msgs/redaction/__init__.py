"""Exchanges without their secrets: names, ids, payloads and passwords are replaced by others of the same lengths.

``field_kinds`` says which fields hold which kind of secret. ``masks`` makes texts, ``records`` makes batches of records
that are still valid, and ``messages`` does it for messages and exchanges.
"""

from kafka_msgs.redaction.field_kinds import ALL_KINDS, RedactKind
from kafka_msgs.redaction.messages import Redactor
from kafka_msgs.redaction.records import redact_records

__all__ = ["ALL_KINDS", "RedactKind", "Redactor", "redact_records"]
