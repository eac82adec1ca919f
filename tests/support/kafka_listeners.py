"""Listeners of the test cluster's nodes, the users who may log in, and the nodes' certificates.

This module defines configuration only and starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["HOST", "SCRAM_MECHANISMS", "USERS", "Certificates", "Listener", "listener_settings"]

HOST: Final = "127.0.0.1"

USERS: Final[Mapping[str, str]] = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
"""Names and passwords, equal for PLAIN and SCRAM. ``admin`` is a super user."""

SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")

_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


class Listener(Enum):
    """A listener of every node: its configuration name and its security protocol."""

    PLAINTEXT = ("PLAINTEXT", "PLAINTEXT")
    SSL = ("SSL", "SSL")
    """Requests a client certificate without requiring one."""
    SASL_PLAINTEXT = ("SASL_PLAINTEXT", "SASL_PLAINTEXT")
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER (unsecured JSON web tokens)."""
    SASL_SSL = ("SASL_SSL", "SASL_SSL")
    REAUTHENTICATING = ("REAUTHENTICATING", "SASL_PLAINTEXT")
    """As ``SASL_PLAINTEXT``; the broker closes connections without reauthentication within two seconds (KIP-368)."""
    PROXIED = ("PROXIED", "PLAINTEXT")
    """Advertises the addresses chosen when the cluster was started; optional."""
    CONTROLLER = ("CONTROLLER", "PLAINTEXT")
    """Only for clients that connect to controllers."""

    @property
    def protocol(self) -> str:
        """Return Kafka's ``security.protocol``."""
        return self.value[1]


class Certificates(NamedTuple):
    """PEM files of a certificate authority created for one cluster."""

    authority: Path
    """The authority that clients trust."""
    server: Path
    """The nodes' key and certificate, for ``localhost`` and 127.0.0.1."""
    client: Path
    """A client's key and certificate."""
    other_authority: Path
    """An authority that signed nothing: clients that trust only this one reject the nodes."""

    @classmethod
    def at(cls, directory: Path) -> Certificates:
        """Return the paths of the files below ``directory``."""
        return cls(*(directory / f"{name.replace('_', '-')}.pem" for name in cls._fields))

    @classmethod
    def make(cls, directory: Path) -> Certificates:
        """Create an authority and its signed certificates; write the files below ``directory``."""
        import trustme

        files = cls.at(directory)
        authority = trustme.CA(key_type=trustme.KeyType.RSA)
        authority.cert_pem.write_to_path(files.authority)
        trustme.CA().cert_pem.write_to_path(files.other_authority)
        _write(files.server, authority.issue_cert("localhost", HOST, key_type=trustme.KeyType.RSA))
        _write(files.client, authority.issue_cert("client@example.com", key_type=trustme.KeyType.RSA))
        return files


def _write(path: Path, certificate: object) -> None:
    """Write key and chain to one file, with the key as PKCS#8, the only form that Kafka reads."""
    from cryptography.hazmat.primitives import serialization
    from trustme import LeafCert

    assert isinstance(certificate, LeafCert)
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), password=None)
    pkcs8 = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(pkcs8 + b"".join(blob.bytes() for blob in certificate.cert_chain_pems))


def listener_settings(certificates: Certificates) -> dict[str, str]:
    """Return the configuration of a node's listeners, without their addresses."""
    settings = {
        "listener.security.protocol.map": ",".join(f"{each.name}:{each.protocol}" for each in Listener),
        "controller.listener.names": Listener.CONTROLLER.name,
        "inter.broker.listener.name": Listener.PLAINTEXT.name,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.ssl.ssl.client.auth": "requested",
    }
    for listener in (Listener.SASL_PLAINTEXT, Listener.SASL_SSL, Listener.REAUTHENTICATING):
        settings |= _sasl(f"listener.name.{listener.name.lower()}.")
    mechanisms = (each.lower() for each in ("PLAIN", *SCRAM_MECHANISMS, "OAUTHBEARER"))
    prefix = f"listener.name.{Listener.REAUTHENTICATING.name.lower()}."
    return settings | {f"{prefix}{each}.connections.max.reauth.ms": "2000" for each in mechanisms}


def _sasl(prefix: str) -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    return {
        f"{prefix}sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM_MECHANISMS, "OAUTHBEARER")),
        f"{prefix}plain.sasl.jaas.config": f"{_PLAIN} {users};",
        **{f"{prefix}{each.lower()}.sasl.jaas.config": _SCRAM for each in SCRAM_MECHANISMS},
        f"{prefix}oauthbearer.sasl.jaas.config": f'{_OAUTH} unsecuredLoginStringClaim_sub="admin";',
    }
