"""Conversion of filesystem options for delta-rs, obstore and pyiceberg, which open object stores themselves.

``arrow_arguments`` defines the names, and interprets Hadoop's settings by location; parameters of a URI take precedence
over them. delta-rs and obstore have the same names, because both use the crate ``object_store``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from kafka_msgs.filesystems.arrow_arguments import STORES, Arguments, arguments_of
from kafka_msgs.filesystems.location import Location
from kafka_msgs.filesystems.options import FilesystemOptions

__all__ = ["SCHEMES", "properties", "storage_options"]


_NO_ACCOUNT: Final = json.dumps({"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""})
"""The key of no account: ``object_store`` signs writes to Google's store even if it is anonymous."""
SCHEMES: Final = tuple(STORES)
"""The URI schemes of object stores for tables."""


def storage_options(location: str, fs_options: FilesystemOptions) -> dict[str, str]:
    """Return the options of ``object_store`` for a location, none for local paths.

    Raises ``ValueError`` for a wrong setting.
    """
    return {name: value for (name, _), value in _named(location, fs_options) if name}


def properties(location: str, fs_options: FilesystemOptions) -> dict[str, str]:
    """Return the pyiceberg properties for a location. Raises ``ValueError`` for a wrong setting."""
    return {name: value for (_, name), value in _named(location, fs_options) if name}


def _named(text: str, fs_options: FilesystemOptions) -> Iterator[tuple[tuple[str, str], str]]:
    location = Location.parse(text)
    if location.scheme not in STORES:
        return
    names = STORES[location.scheme].names
    for name, value in _with_endpoint(arguments_of(location, dict(fs_options.items)), location).items():
        if name in names:
            yield names[name], str(value).lower() if isinstance(value, bool) else str(value)


def _with_endpoint(given: Arguments, location: Location) -> Arguments:
    """Return the arguments with the endpoint as a URL; the endpoint of Azure's emulator has the account in its path."""
    server, scheme = given.get("endpoint_override"), given.get("scheme", "https")
    if blob := given.get("blob_storage_authority"):
        account = location.authority.rpartition("@")[2].partition(".")[0]
        server, scheme = f"{blob}/{account}", given.get("blob_storage_scheme", "https")
    if not server:
        return given
    if given.get("anonymous"):
        given = given | {"no_account": _NO_ACCOUNT}
    return given | {"endpoint": f"{scheme}://{server}"} | ({"http": True} if scheme == "http" else {})
