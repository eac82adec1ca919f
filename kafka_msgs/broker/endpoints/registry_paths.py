"""The HTTP paths of the schema registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

from kafka_msgs.broker.endpoints.routes import HttpRequest, Route
from kafka_msgs.broker.endpoints.schema_registry import (
    SCHEMA_TYPES,
    RegisteredVersion,
    SchemaReference,
    SchemaRegistry,
    SchemaText,
    refuse,
)
from kafka_msgs.broker.object_parsing import parse_object

__all__ = ["CONTENT_TYPE", "registry_routes"]

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_LEVEL_NOT_SET: Final = 40408


def registry_routes(registry: SchemaRegistry) -> Iterator[Route]:
    """Yield the routes of a registry."""
    paths = _Paths(registry)
    subject, version = "/subjects/{subject}", "/subjects/{subject}/versions/{version}"
    checks = "/compatibility/subjects/{subject}/versions"
    yield Route("GET", "/", lambda _: {})
    yield Route("GET", "/mode", lambda _: {"mode": "READWRITE"})
    yield Route("GET", "/schemas/types", lambda _: list(SCHEMA_TYPES))
    yield Route("GET", "/schemas/ids/{id}", lambda request: _shown_schema(registry.schema(_schema_id(request))))
    yield Route("GET", "/schemas/ids/{id}/schema", lambda request: registry.schema(_schema_id(request)).text)
    yield Route("GET", "/schemas/ids/{id}/subjects", paths.subjects_of_schema)
    yield Route("GET", "/schemas/ids/{id}/versions", paths.versions_of_schema)
    yield Route("GET", "/subjects", lambda request: registry.subjects(deleted=_flag(request, "deleted")))
    yield Route("POST", subject, paths.lookup)
    yield Route("DELETE", subject, paths.delete_subject)
    yield Route("GET", f"{subject}/versions", paths.versions)
    yield Route("POST", f"{subject}/versions", paths.register)
    yield Route("GET", version, lambda request: paths.show(request.path["subject"], paths.find(request)))
    yield Route("DELETE", version, paths.delete_version)
    yield Route("GET", f"{version}/schema", lambda request: registry.schema(paths.find(request).schema_id).text)
    yield Route("GET", f"{version}/referencedby", paths.referenced_by)
    yield Route("POST", checks, paths.check)
    yield Route("POST", f"{checks}/{{version}}", paths.check)
    yield Route("GET", "/config", lambda _: {"compatibilityLevel": registry.level})
    yield Route("PUT", "/config", paths.set_level)
    yield Route("GET", "/config/{subject}", paths.level)
    yield Route("PUT", "/config/{subject}", paths.set_level)
    yield Route(
        "DELETE",
        "/config/{subject}",
        lambda request: {"compatibilityLevel": registry.levels.pop(request.path["subject"], registry.level)},
    )


class _Paths:
    """The handlers of the paths."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry

    def subjects_of_schema(self, request: HttpRequest) -> object:
        return sorted({subject for subject, _ in self._registry.uses(_schema_id(request))})

    def versions_of_schema(self, request: HttpRequest) -> object:
        uses = self._registry.uses(_schema_id(request))
        return [{"subject": subject, "version": number} for subject, number in uses]

    def lookup(self, request: HttpRequest) -> object:
        subject = request.path["subject"]
        found = self._registry.lookup(subject, _schema_of(request), deleted=_flag(request, "deleted"))
        return self.show(subject, found)

    def register(self, request: HttpRequest) -> object:
        return {"id": self._registry.register(request.path["subject"], _schema_of(request))}

    def versions(self, request: HttpRequest) -> object:
        found = self._registry.versions(request.path["subject"], deleted=_flag(request, "deleted"))
        return [each.number for each in found]

    def referenced_by(self, request: HttpRequest) -> object:
        return self._registry.referenced_by(request.path["subject"], self.find(request).number)

    def delete_subject(self, request: HttpRequest) -> object:
        return self._registry.delete(request.path["subject"], permanent=_flag(request, "permanent"))

    def delete_version(self, request: HttpRequest) -> object:
        subject, number = request.path["subject"], request.path["version"]
        return self._registry.delete(subject, number, permanent=_flag(request, "permanent"))[0]

    def check(self, request: HttpRequest) -> object:
        subject, number = request.path["subject"], request.path.get("version")
        reasons = self._registry.incompatibilities(subject, _schema_of(request), number)
        shown = {"messages": reasons} if _flag(request, "verbose") else {}
        return {"is_compatible": not reasons, **shown}

    def level(self, request: HttpRequest) -> object:
        subject = request.path["subject"]
        level = self._registry.levels.get(subject)
        if level is None and _flag(request, "defaultToGlobal"):
            level = self._registry.level
        if level is None:
            message = f"Subject '{subject}' does not have subject-level compatibility configured"
            raise refuse(HTTPStatus.NOT_FOUND, _LEVEL_NOT_SET, message)
        return {"compatibilityLevel": level}

    def set_level(self, request: HttpRequest) -> object:
        data = request.json
        level = str(data.get("compatibility")) if isinstance(data, Mapping) else "null"
        self._registry.set_level(request.path.get("subject"), level)
        return {"compatibility": level}

    def find(self, request: HttpRequest) -> RegisteredVersion:
        subject, number = request.path["subject"], request.path["version"]
        return self._registry.version(subject, number, deleted=_flag(request, "deleted"))

    def show(self, subject: str, version: RegisteredVersion) -> object:
        schema = self._registry.schema(version.schema_id)
        return {"subject": subject, "version": version.number, "id": version.schema_id, **_shown_schema(schema)}


def _shown_schema(schema: SchemaText) -> dict[str, Any]:
    """Return a schema as Confluent shows it: the type AVRO and empty references are omitted."""
    kind = {} if schema.kind == "AVRO" else {"schemaType": schema.kind}
    uses = [{"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references]
    return {"schema": schema.text, **kind, **({"references": uses} if uses else {})}


def _schema_of(request: HttpRequest) -> SchemaText:
    """Return the schema in the body of a request. Other entries, such as metadata, are ignored as in Confluent's."""
    data = request.json
    table: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    text, kind = table.get("schema"), table.get("schemaType") or "AVRO"
    if not isinstance(text, str) or not isinstance(kind, str):
        raise refuse(HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.UNPROCESSABLE_ENTITY, "schema: a text is needed")
    uses = table.get("references") or []
    if not isinstance(uses, list):
        raise refuse(HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.UNPROCESSABLE_ENTITY, "references: a list is needed")
    return SchemaText(kind, text, tuple(parse_object(SchemaReference, each, "references") for each in uses))


def _schema_id(request: HttpRequest) -> int:
    text = request.path["id"]
    if not (text.isascii() and text.isdecimal()):
        raise refuse(HTTPStatus.NOT_FOUND, HTTPStatus.NOT_FOUND, f"{text} is not a schema id")
    return int(text)


def _flag(request: HttpRequest, name: str) -> bool:
    return request.query.get(name, "").lower() == "true"
