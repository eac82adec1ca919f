"""The REST API of a schema registry, as a source of schemas.

Handles the requests and their errors. A schema with an id never changes, so it is requested only once.
"""

from __future__ import annotations

import json
from base64 import b64encode
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from attrs import define, field

from kafka_msgs.errors import OptionError, RegistryError, UnknownSchemaError
from kafka_msgs.registry.schemas import RegisteredSchema, schema_of_json

__all__ = ["SchemaRegistryClient"]

_NOT_FOUND = 404
_MOST = 64 << 20


@define(eq=False, slots=False)
class SchemaRegistryClient:
    """An HTTP client of a schema registry.

    ``url`` is its address, such as ``http://registry:8081``. ``user`` and ``password`` are for basic authentication,
    ``token`` is for bearer authentication. ``timeout_ms`` limits each network wait. Raises ``OptionError`` for an
    address that is not an HTTP URL.
    """

    url: str
    user: str | None = field(default=None, kw_only=True)
    password: str | None = field(default=None, kw_only=True, repr=False)
    token: str | None = field(default=None, kw_only=True, repr=False)
    timeout_ms: int = field(default=30_000, kw_only=True)
    _ids: dict[int, RegisteredSchema] = field(init=False, factory=dict, repr=False)

    def __attrs_post_init__(self) -> None:
        if urlsplit(self.url).scheme not in {"http", "https"}:
            reason = "it starts with neither http:// nor https://"
            raise OptionError(source="SchemaRegistryClient", option="url", value=self.url, reason=reason)

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Return the schema with the id; raises ``UnknownSchemaError`` and ``RegistryError``."""
        if schema_id not in self._ids:
            found = self._asked(f"schemas/ids/{schema_id}", f"schema {schema_id}")
            self._ids[schema_id] = schema_of_json(found, self.url, schema_id)
        return self._ids[schema_id]

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version of a subject; raises ``UnknownSchemaError`` and ``RegistryError``."""
        path = f"subjects/{quote(subject, safe='')}/versions/{version}?deleted=true"
        return schema_of_json(self._asked(path, f"version {version} of subject {subject!r}"), self.url)

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest version of a subject; raises ``UnknownSchemaError`` and ``RegistryError``."""
        path = f"subjects/{quote(subject, safe='')}/versions/latest"
        return schema_of_json(self._asked(path, f"subject {subject!r}"), self.url)

    def _asked(self, path: str, what: str) -> Any:
        request = Request(
            f"{self.url.rstrip('/')}/{path}", headers={"Accept": "application/json"} | self._credentials()
        )
        try:
            with urlopen(request, timeout=self.timeout_ms / 1000) as answer:
                content = answer.read(_MOST + 1)
        except HTTPError as error:
            with error:
                if error.code == _NOT_FOUND:
                    raise UnknownSchemaError(source=self.url, schema=what) from error
                raise RegistryError(source=self.url, status=error.code, reason=str(error.reason)) from error
        except (OSError, HTTPException) as error:
            raise RegistryError(source=self.url, reason=str(error) or type(error).__name__) from error
        if len(content) > _MOST:
            raise RegistryError(source=self.url, reason=f"{what} has more than {_MOST} bytes")
        try:
            return json.loads(content)
        except ValueError as error:
            raise RegistryError(source=self.url, reason=f"the answer for {what} is not JSON: {error}") from error

    def _credentials(self) -> dict[str, str]:
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token}"}
        if self.user is not None:
            basic = b64encode(f"{self.user}:{self.password or ''}".encode()).decode()
            return {"Authorization": f"Basic {basic}"}
        return {}
