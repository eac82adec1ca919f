"""Name resolution. The functions block; ``Network.resolve`` runs them in a helper thread."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from itertools import chain, zip_longest

from kafka_msgs.client.network import Address, Endpoint

__all__ = ["alternate_families", "is_unknown_host", "resolve_canonical_names", "resolve_host"]


def resolve_host(address: Address) -> tuple[Endpoint, ...]:
    """Return the addresses of a host, with alternating address families (RFC 8305). Raises ``OSError``."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise socket.gaierror(socket.EAI_NONAME, "the host name is malformed") from None
    endpoints = (Endpoint(address, family, sockaddr) for family, _, _, _, sockaddr in found)
    return alternate_families(dict.fromkeys(endpoints))


def alternate_families(endpoints: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
    """Return endpoints in resolver order, but with alternating address families, so no family is tried last."""
    families: dict[int, list[Endpoint]] = {}
    for each in endpoints:
        families.setdefault(each.family, []).append(each)
    rounds = zip_longest(*families.values())
    return tuple(each for each in chain.from_iterable(rounds) if each is not None)


def resolve_canonical_names(address: Address) -> tuple[Address, ...]:
    """Return the canonical name of each address of a host, as ``resolve_canonical_bootstrap_servers_only`` does.

    An address without a name represents itself. Raises ``OSError``.
    """
    endpoints = resolve_host(address)
    names = (socket.getnameinfo(each.sockaddr, socket.NI_NUMERICSERV)[0] for each in endpoints)
    return tuple(dict.fromkeys(Address(name, address.port) for name in names))


def is_unknown_host(error: OSError) -> bool:
    """Return whether the name does not exist. Other failures, such as EAI_AGAIN, may be transient."""
    unknown = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
    return isinstance(error, socket.gaierror) and error.errno in unknown
