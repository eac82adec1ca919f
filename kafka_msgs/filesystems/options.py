"""Settings of filesystems, by the names that Hadoop gives them, and which of them must not be shown.

Owns the names and their precedence. What a setting does to a filesystem is left to ``arrow`` and ``fsspec_bridge``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import field, frozen

__all__ = ["NO_OPTIONS", "PREFIXES", "FilesystemOptions", "mask_uri"]

PREFIXES: Final = ("fs.", "dfs.", "google.cloud.auth.", "storage.")
"""How the names of settings start. Those with ``storage.`` are arguments of a filesystem of ``fsspec``."""

_SECRET: Final = re.compile(r"secret|password|token|credential|access.?key|account.?key|\bsas\b|\bkey\b", re.IGNORECASE)
_USER: Final = re.compile(r"(?<=://)[^/?@]*:[^/?@]*@")
_PARAMETER: Final = re.compile(r"(?<=[?&])([^=&]*)=([^&]*)")
_CREDENTIALS: Final = (
    re.compile(
        r"fs\.s3a\.(?:.*\.)?(?:access\.key|secret\.key|session\.token|aws\.credentials\.provider|assumed\.role\..*)"
    ),
    re.compile(r"fs\.azure\.(?:account\.key|sas|account\.oauth2).*"),
    re.compile(r"(?:google\.cloud|fs\.gs)\.auth\..*"),
)
"""Settings that together say who asks: those of two sources are not mixed."""
_SPARK: Final = "spark.hadoop."
_HIDDEN: Final = "***"
_LEAST: Final = 3
"""A secret that is shorter is not looked for in texts: it would be found in every word."""


@frozen
class FilesystemOptions:
    """Settings by name. Their values are not shown."""

    items: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def from_mapping(cls, given: Mapping[str, str]) -> FilesystemOptions:
        """Return those of ``given`` that are settings of filesystems, by their names."""
        return cls(tuple(sorted((name, value) for name, value in given.items() if name.startswith(PREFIXES))))

    @classmethod
    def from_spark_conf(cls, conf: Mapping[str, str]) -> FilesystemOptions:
        """Return the settings of filesystems in a configuration of Spark, which has ``spark.hadoop`` before names."""
        return cls.from_mapping(
            {name.removeprefix(_SPARK): value for name, value in conf.items() if name.startswith(_SPARK)}
        )

    def over(self, other: FilesystemOptions) -> FilesystemOptions:
        """Return these settings, and those of another source about which these say nothing."""
        mine = {name.lower() for name, _ in self.items}
        whose = [form for form in _CREDENTIALS if any(map(form.fullmatch, mine))]
        left = {
            name: value
            for name, value in other.items
            if not any(_says_more(name.lower(), each) for each in mine)
            and not any(form.fullmatch(name.lower()) for form in whose)
        }
        return FilesystemOptions.from_mapping(left | dict(self.items))

    def get(self, name: str) -> str | None:
        """Return the value of a setting, or None. Names do not depend on case."""
        return next((value for each, value in self.items if each.lower() == name.lower()), None)

    def starting(self, *prefixes: str) -> FilesystemOptions:
        """Return the settings whose names start with one of ``prefixes``."""
        return FilesystemOptions(tuple(each for each in self.items if each[0].startswith(prefixes)))

    def without_prefix(self, prefix: str) -> dict[str, str]:
        """Return the settings whose names start with ``prefix``, by the rest of the name."""
        return {name.removeprefix(prefix): value for name, value in self.items if name.startswith(prefix)}

    def mask_secrets(self, text: str) -> str:
        """Return a text with every secret of these settings replaced."""
        for value in sorted(self._secrets(), key=len, reverse=True):
            text = text.replace(value, _HIDDEN)
        return text

    def _secrets(self) -> Iterator[str]:
        return (value for name, value in self.items if _SECRET.search(name) and len(value) > _LEAST)


NO_OPTIONS: Final = FilesystemOptions()


def _says_more(name: str, general: str) -> bool:
    """Whether a setting is ``general``, or the same for one bucket or one account."""
    of_bucket = name.startswith("fs.s3a.bucket.") and name.endswith(general.removeprefix("fs.s3a"))
    of_account = name.startswith(f"{general}.") and general.startswith("fs.azure.")
    return name == general or of_bucket or of_account


def mask_uri(uri: str) -> str:
    """Return a path or URI as it may be shown: without passwords, and without the values of secret parameters."""
    return _PARAMETER.sub(_shown_parameter, _USER.sub(f"{_HIDDEN}@", uri)) if "://" in uri else uri


def _shown_parameter(match: re.Match[str]) -> str:
    return f"{match[1]}={_HIDDEN if _SECRET.search(match[1]) else match[2]}"
