"""Errors of schema registries, their schemas, and payloads that reference a schema."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError, mask_credentials

__all__ = ["PayloadError", "RegisteredSchemaError", "RegistryError", "UnknownSchemaError"]


@define(kw_only=True, slots=False, repr=False)
class RegistryError(KafkaMsgsError):
    """A registry that did not respond, or an unreadable list of schemas.

    Attributes: ``source`` (an address, a path or a topic), ``status`` (the HTTP status or None) and ``reason``.
    """

    source: str
    status: int | None = None
    reason: str

    def _text(self) -> str:
        status = "" if self.status is None else f" status {self.status}:"
        return str(mask_credentials(f"{self.source}:{status} {self.reason}"))


@define(kw_only=True, slots=False, repr=False)
class UnknownSchemaError(KafkaMsgsError, LookupError):
    """A schema that a registry does not have. Attributes: ``source`` and ``schema`` (the requested schema)."""

    source: str
    schema: str

    def _text(self) -> str:
        return str(mask_credentials(f"{self.source} has no {self.schema}"))


@define(kw_only=True, slots=False, repr=False)
class RegisteredSchemaError(KafkaMsgsError, ValueError):
    """A registered schema that cannot become a column. Attributes: ``schema_id`` and ``reason``."""

    schema_id: int
    reason: str

    def _text(self) -> str:
        return f"schema {self.schema_id}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class PayloadError(KafkaMsgsError, ValueError):
    """Bytes that do not match the schema that they reference, or a value that the schema does not allow.

    Attributes: ``row`` (None for a value outside a column), ``schema_id`` (None if the bytes contain none) and
    ``reason``.
    """

    row: int | None
    schema_id: int | None
    reason: str

    def _text(self) -> str:
        place = "a value" if self.row is None else f"row {self.row}"
        schema = "" if self.schema_id is None else f" of schema {self.schema_id}"
        return f"{place}{schema}: {self.reason}"
