"""What the nodes of a test cluster listen on, who may log in, and the certificates that they show.

This file owns the listeners' configuration. It starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["HOST", "SCRAM_MECHANISMS", "USERS", "Certificates", "Listener", "listener_settings"]

HOST: Final = "127.0.0.1"

USERS: Final[Mapping[str, str]] = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
"""Names and passwords, the same with PLAIN and SCRAM. ``admin`` is a super user."""

SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")

_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


class Listener(Enum):
    """A listener of every node: its name in the configuration, and its security protocol."""

    PLAINTEXT = ("PLAINTEXT", "PLAINTEXT")
    SSL = ("SSL", "SSL")
    """A client's certificate is asked for, and not required."""
    SASL_PLAINTEXT = ("SASL_PLAINTEXT", "SASL_PLAINTEXT")
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER (unsecured JSON web tokens)."""
    SASL_SSL = ("SASL_SSL", "SASL_SSL")
    REAUTHENTICATING = ("REAUTHENTICATING", "SASL_PLAINTEXT")
    """As ``SASL_PLAINTEXT``; the broker closes a connection that did not log in again within two seconds (KIP-368)."""
    PROXIED = ("PROXIED", "PLAINTEXT")
    """Answers with addresses that whoever started the cluster chose; a cluster may be without it."""
    CONTROLLER = ("CONTROLLER", "PLAINTEXT")
    """Not for clients, except those that speak to controllers."""

    @property
    def protocol(self) -> str:
        """Kafka's ``security.protocol``."""
        return self.value[1]


class Certificates(NamedTuple):
    """Files in PEM, of a certificate authority made for one cluster."""

    authority: Path
    """What clients trust."""
    server: Path
    """The nodes' key and certificate, for ``localhost`` and 127.0.0.1."""
    client: Path
    """A client's key and certificate."""
    other_authority: Path
    """An authority that signed nothing: who trusts it only refuses the nodes."""

    @classmethod
    def at(cls, directory: Path) -> Certificates:
        """The files' places below ``directory``."""
        return cls(*(directory / f"{name.replace('_', '-')}.pem" for name in cls._fields))

    @classmethod
    def make(cls, directory: Path) -> Certificates:
        """Make an authority and what it signs; the files are written below ``directory``."""
        import trustme

        files = cls.at(directory)
        authority = trustme.CA(key_type=trustme.KeyType.RSA)
        authority.cert_pem.write_to_path(files.authority)
        trustme.CA().cert_pem.write_to_path(files.other_authority)
        _write(files.server, authority.issue_cert("localhost", HOST, key_type=trustme.KeyType.RSA))
        _write(files.client, authority.issue_cert("client@example.com", key_type=trustme.KeyType.RSA))
        return files


def _write(path: Path, certificate: object) -> None:
    """Key and chain in one file, the key as PKCS#8: Kafka reads no other."""
    from cryptography.hazmat.primitives import serialization
    from trustme import LeafCert

    assert isinstance(certificate, LeafCert)
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), password=None)
    pkcs8 = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(pkcs8 + b"".join(blob.bytes() for blob in certificate.cert_chain_pems))


def listener_settings(certificates: Certificates) -> dict[str, str]:
    """The configuration of all listeners of a node, without their addresses."""
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
