"""Fixtures for aiokafka's tests: a broker by address instead of a container, and replacements for its commands."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from kafka_msgs.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermissionType,
    Admin,
    ResourceType,
    ScramMechanism,
    ScramUpsertion,
)

from . import replacing

_HOST: Final = "127.0.0.1"
_RESOURCES: Final = {
    "cluster": ResourceType.CLUSTER,
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}
_PERMISSIONS: Final = {"allow_principal": AclPermissionType.ALLOW, "deny_principal": AclPermissionType.DENY}


def _admin() -> Admin:
    return Admin(replacing.BROKER["listeners"]["PLAINTEXT"])


class _Acls:
    """Replaces ``kafka-acls`` with the same option names."""

    def __init__(self) -> None:
        self._added: list[AclBinding] = []

    def add_acl(self, **options: Any) -> None:
        binding = _binding(**options)
        with _admin() as admin:
            admin.create_acls([binding]).all()
        self._added.append(binding)

    def list_acl(self, principal: str | None = None) -> object:
        with _admin() as admin:
            return admin.describe_acls(AclFilter(principal=principal and f"User:{principal}"))

    def cleanup(self) -> None:
        filters = [
            AclFilter(resource_type=each.resource_type, resource_name=each.resource_name, principal=each.principal)
            for each in self._added
        ]
        self._added.clear()
        with _admin() as admin:
            admin.delete_acls(filters).all()


def _binding(*, operation: str, **options: Any) -> AclBinding:
    resource = next(name for name in _RESOURCES if name in options)
    principal = next(name for name in _PERMISSIONS if name in options)
    return AclBinding(
        resource_type=_RESOURCES[resource],
        resource_name="kafka-cluster" if resource == "cluster" else options[resource],
        principal=f"User:{options[principal]}",
        operation=AclOperation[operation.upper()],
        permission=_PERMISSIONS[principal],
    )


class _Config:
    """Replaces ``kafka-configs``."""

    def add_scram_user(self, name: str, password: str) -> None:
        changes = [ScramUpsertion(user=name, mechanism=mechanism, password=password) for mechanism in ScramMechanism]
        with _admin() as admin:
            for change in changes:
                admin.alter_user_scram_credentials([change]).all()


class _NoKerberos:
    """Skips tests that require a Kerberos server."""

    def kinit(self, principal: str) -> None:
        pytest.skip("needs a Kerberos server")

    def kdestroy(self) -> None:
        """Do nothing, because there is no ticket."""


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Deselect tests that need no broker."""
    chosen = [item for item in items if "kafka_server" in item.fixturenames]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


@replacing.replaces("kafka_image")
def _image(request: Any) -> str:
    return str(request.config.getoption("--docker-image"))


@replacing.replaces("docker")
def _docker(request: Any) -> object:
    return SimpleNamespace()


@replacing.replaces("kafka_server")
def _server(request: Any) -> object:
    ports = {
        name: replacing.port(listener)
        for name, listener in {
            "port": "PLAINTEXT",
            "ssl_port": "SSL",
            "sasl_plain_port": "SASL_PLAINTEXT",
            "sasl_ssl_port": "SASL_SSL",
        }.items()
    }
    return SimpleNamespace(host=_HOST, hosts=[f"{_HOST}:{ports['port']}"], container=None, **ports)


@replacing.replaces("ssl_folder")
def _certificates(request: Any) -> Path:
    folder = Path("tests", "ssl_cert")
    folder.mkdir(exist_ok=True)
    names = {"authority": ("ca.crt",), "client": ("client.crt", "client.key")}
    for name, copies in names.items():
        for copy in copies:
            shutil.copy(replacing.BROKER["certificates"][name], folder / copy)
    return folder


@replacing.replaces("acl_manager")
def _acl_manager(request: Any) -> object:
    return _Acls()


@replacing.replaces("kafka_config")
def _kafka_config(request: Any) -> object:
    return _Config()


@replacing.replaces("kerberos_utils")
def _kerberos(request: Any) -> object:
    return _NoKerberos()
