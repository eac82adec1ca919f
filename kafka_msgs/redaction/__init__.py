"""Redaction of exchanges: names, ids and payloads become masks of the same lengths, passwords masks of one length.

``field_kinds`` classifies the fields by kind of secret. ``masks`` generates texts, ``records`` redacts record batches
so that they remain valid, and ``messages`` redacts messages and exchanges.
"""

from kafka_msgs.redaction.field_kinds import ALL_KINDS, RedactKind
from kafka_msgs.redaction.messages import Redactor
from kafka_msgs.redaction.records import redact_records

__all__ = ["ALL_KINDS", "RedactKind", "Redactor", "redact_records"]
