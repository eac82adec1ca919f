"""Resolution of URIs to filesystems with their options.

Defines the mapping of schemes to libraries, and the parsing of authorities: bucket and account. URI parameters
take precedence over options, and options over environment variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import Final, NamedTuple
from urllib.parse import unquote

from pyarrow import fs

from kafka_msgs.filesystems.arrow_arguments import azure_arguments, gcs_arguments, parameters_of, s3_arguments
from kafka_msgs.filesystems.fsspec_bridge import hdfs_filesystem, other_filesystem
from kafka_msgs.filesystems.location import Location
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions

__all__ = ["OpenedFilesystem", "filesystem_of", "settings_for"]

_AZURE: Final = re.compile(r"(?P<container>[^@:]+)@(?P<account>[^.@:]+)\.(?P<domain>[^@:]+)")
_AZURE_DOMAIN: Final = "dfs.core.windows.net"


class OpenedFilesystem(NamedTuple):
    """A filesystem, and the path on it given by the authority of the URI."""

    filesystem: fs.FileSystem
    start: str


def settings_for(scheme: str, given: FilesystemOptions) -> FilesystemOptions:
    """Return the options that apply to filesystems of a scheme."""
    kind = _KINDS.get(scheme)
    return given.starting(*(kind.settings if kind else _OTHER.settings))


@lru_cache(maxsize=16)
def filesystem_of(root: str, fs_options: FilesystemOptions = NO_OPTIONS) -> OpenedFilesystem:
    """Return the filesystem of a root: a URI with parameters and without a path, or empty for the local filesystem.

    Raises ``OSError``, ``ValueError`` and ``MissingExtraError``.
    """
    if not root:
        return OpenedFilesystem(fs.LocalFileSystem(), "")
    location = Location.parse(root)
    kind = _KINDS.get(location.scheme, _OTHER)
    return kind.open(root, location.authority, location.query, fs_options)


def _s3(root: str, authority: str, query: str, fs_options: FilesystemOptions) -> OpenedFilesystem:
    user, _, bucket = authority.rpartition("@")
    given = s3_arguments(fs_options, bucket)
    if not given:
        return OpenedFilesystem(*fs.FileSystem.from_uri(root))
    keys = dict(zip(("access_key", "secret_key"), map(unquote, user.split(":", 1)), strict=False)) if user else {}
    given |= keys | parameters_of(query)
    if not given.keys() & {"region", "endpoint_override"}:
        given["region"] = fs.resolve_s3_region(bucket)
    return OpenedFilesystem(fs.S3FileSystem(**given), bucket)


def _gcs(root: str, authority: str, query: str, fs_options: FilesystemOptions) -> OpenedFilesystem:
    given = gcs_arguments(fs_options)
    if not given:
        return OpenedFilesystem(*fs.FileSystem.from_uri(root))
    user, _, bucket = authority.rpartition("@")
    anonymous = {"anonymous": True} if user == "anonymous" else {}
    return OpenedFilesystem(fs.GcsFileSystem(**(given | anonymous | parameters_of(query))), bucket)


def _azure(root: str, authority: str, query: str, fs_options: FilesystemOptions) -> OpenedFilesystem:
    match = _AZURE.fullmatch(authority)
    given = azure_arguments(fs_options, authority.rpartition("@")[2])
    if match is None or not given:
        return OpenedFilesystem(*fs.FileSystem.from_uri(root))
    domain = match["domain"]
    if domain != _AZURE_DOMAIN:
        given |= {
            "dfs_storage_authority": f".{domain}",
            "blob_storage_authority": f".{domain.replace('dfs', 'blob', 1)}",
        }
    given |= {"account_name": match["account"], **parameters_of(query)}
    return OpenedFilesystem(fs.AzureFileSystem(**given), match["container"])


def _hdfs(root: str, authority: str, query: str, fs_options: FilesystemOptions) -> OpenedFilesystem:
    """Return HDFS through ``hdfs_native`` if installed, otherwise through Arrow, which needs Java and ``libhdfs``."""
    named = authority or Location.parse(fs_options.get("fs.defaultFS") or "").authority
    user, _, place = named.rpartition("@")
    host, _, port = place.partition(":")
    extra = dict(fs_options.starting("dfs.").items)
    if find_spec("hdfs_native") is not None:
        if user:
            raise ValueError("the user of HDFS is what the environment variable HADOOP_USER_NAME says")
        return OpenedFilesystem(hdfs_filesystem(host or None, int(port) if port else None, extra), "")
    made = fs.HadoopFileSystem(
        host or "default", int(port or 0), user=user or None, extra_conf=extra, **parameters_of(query)
    )
    return OpenedFilesystem(made, "")


def _other(root: str, authority: str, query: str, fs_options: FilesystemOptions) -> OpenedFilesystem:
    made, start = other_filesystem(
        root.removesuffix(query), parameters_of(query), fs_options.without_prefix("storage.")
    )
    return OpenedFilesystem(made, start)


class _Kind(NamedTuple):
    """The filesystems of a scheme: the function that opens one, and the prefixes of its option names."""

    open: Callable[[str, str, str, FilesystemOptions], OpenedFilesystem]
    settings: tuple[str, ...]


_KINDS: Final[Mapping[str, _Kind]] = {
    "s3": _Kind(_s3, ("fs.s3a.",)),
    "gs": _Kind(_gcs, ("fs.gs.", "google.cloud.auth.")),
    "gcs": _Kind(_gcs, ("fs.gs.", "google.cloud.auth.")),
    "abfs": _Kind(_azure, ("fs.azure.",)),
    "abfss": _Kind(_azure, ("fs.azure.",)),
    "hdfs": _Kind(_hdfs, ("dfs.", "fs.defaultFS", "fs.defaultfs")),
}
_OTHER: Final = _Kind(_other, ("storage.",))
