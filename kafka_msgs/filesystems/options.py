"""Filesystem options under Hadoop's names, their precedence, and the masking of secrets in them.

``arrow_arguments`` defines the names. ``resolver`` applies the options to filesystems.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.arrow_arguments import is_known, names_like
from kafka_msgs.suggestions import no_such

__all__ = ["NO_OPTIONS", "PREFIXES", "FilesystemOptions", "may_be_secret"]

PREFIXES: Final = ("fs.", "dfs.", "google.cloud.auth.", "storage.")
"""The prefixes of option names. Options with ``storage.`` are arguments of an ``fsspec`` filesystem."""

_SECRET: Final = re.compile(
    r"secret|passw|pwd|token|credential|access.?key|account.?key|jaas|\bsas\b|\bkey\b(?!\.(?:de)?serializer)",
    re.IGNORECASE,
)
_CREDENTIALS: Final = (
    re.compile(
        r"fs\.s3a\.(?:.*\.)?(?:access\.key|secret\.key|session\.token|aws\.credentials\.provider|assumed\.role\..*)"
    ),
    re.compile(r"fs\.azure\.(?:account\.key|sas|account\.oauth2).*"),
    re.compile(r"(?:google\.cloud|fs\.gs)\.auth\..*"),
)
"""Groups of settings that together form credentials. Settings from two sources are not mixed in a group."""
_SPARK: Final = "spark.hadoop."
_HIDDEN: Final = "***"
_LEAST: Final = 3
"""Secrets up to this length are not masked in texts, because they would match parts of ordinary words."""


@frozen
class FilesystemOptions:
    """Filesystem options by name. Their values are excluded from the repr."""

    items: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def from_mapping(cls, given: Mapping[str, str], source: str = "filesystem") -> FilesystemOptions:
        """Return the options in ``given``; ``source`` is named in errors.

        Raises ``OptionError`` for an option that neither this package nor a library under it uses, so that misspelt
        options are noticed.
        """
        for name in given:
            if not is_known(name.lower()):
                reason = no_such("option", name, names_like(name))
                raise OptionError(source=source, option=name, value=None, reason=reason)
        return cls(tuple(sorted(given.items())))

    @classmethod
    def select(cls, given: Mapping[str, str]) -> FilesystemOptions:
        """Return the filesystem options in the configuration of another program, and skip its other options."""
        return cls(tuple(sorted((name, value) for name, value in given.items() if name.startswith(PREFIXES))))

    @classmethod
    def from_spark_conf(cls, conf: Mapping[str, str]) -> FilesystemOptions:
        """Return the filesystem options in a Spark configuration, which prefixes their names with ``spark.hadoop``."""
        return cls.select({name.removeprefix(_SPARK): conf[name] for name in conf if name.startswith(_SPARK)})

    def over(self, other: FilesystemOptions) -> FilesystemOptions:
        """Return these options, completed with options from another source that these do not override."""
        mine = {name.lower() for name, _ in self.items}
        whose = [form for form in _CREDENTIALS if any(map(form.fullmatch, mine))]
        left = {
            name: value
            for name, value in other.items
            if not any(_says_more(name.lower(), each) for each in mine)
            and not any(form.fullmatch(name.lower()) for form in whose)
        }
        return FilesystemOptions(tuple(sorted((left | dict(self.items)).items())))

    def get(self, name: str) -> str | None:
        """Return the value of an option, or None. Names are case-insensitive."""
        return next((value for each, value in self.items if each.lower() == name.lower()), None)

    def starting(self, *prefixes: str) -> FilesystemOptions:
        """Return the options whose names start with one of ``prefixes``."""
        return FilesystemOptions(tuple(each for each in self.items if each[0].startswith(prefixes)))

    def mask_secrets(self, text: str) -> str:
        """Return a text with every secret in these options replaced."""
        secrets = (value for name, value in self.items if may_be_secret(name) and len(value) > _LEAST)
        for value in sorted(secrets, key=len, reverse=True):
            text = text.replace(value, _HIDDEN)
        return text


NO_OPTIONS: Final = FilesystemOptions()


def may_be_secret(name: str) -> bool:
    """Return whether the value of an option may be a secret, by the option's name."""
    return _SECRET.search(name) is not None


def _says_more(name: str, general: str) -> bool:
    """Return whether an option is ``general``, or its variant for one bucket or account."""
    of_bucket = name.startswith("fs.s3a.bucket.") and name.endswith(general.removeprefix("fs.s3a"))
    of_account = name.startswith(f"{general}.") and general.startswith("fs.azure.")
    return name == general or of_bucket or of_account
