"""Users of clients with certificates (mTLS): Java's subject format, and the rules that map subjects to user names.

``ssl.principal.mapping.rules`` has the syntax of Kafka's ``SslPrincipalMapper``: ``DEFAULT``, or rules such as
``RULE:^CN=(.*?),.*$/$1/L``. The first rule that matches the whole subject wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from attrs import frozen

from kafka_msgs.errors import OptionError

__all__ = ["MAPPING_RULES", "parse_mapping_rules", "subject_name"]

MAPPING_RULES: Final = "ssl.principal.mapping.rules"

_KEYWORDS: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""The attributes with RFC 2253 keywords, by OpenSSL's names."""

_EMAIL: Final = "emailAddress"
_EMAIL_OID: Final = "1.2.840.113549.1.9.1"
_IA5_STRING: Final = 0x16
_RULE: Final = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_SPLIT: Final = re.compile(r"\s*,\s*(?=DEFAULT|RULE:)")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)")
_CASES: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}

Subject = Sequence[Sequence[tuple[str, str]]]
"""The subject of a certificate, as ``ssl.SSLSocket.getpeercert`` returns it."""


def subject_name(subject: Subject) -> str:
    """Return a subject in RFC 2253 format, like Java's ``X500Principal.getName``."""
    return ",".join("+".join(_attribute(*each) for each in part) for part in reversed(subject))


def _attribute(name: str, value: str) -> str:
    if name == _EMAIL:
        data = value.encode()
        return f"{_EMAIL_OID}=#{bytes((_IA5_STRING, len(data) & 0x7F)).hex()}{data.hex()}"
    escaped = re.sub(r'([,+"\\<>;])', r"\\\1", value)
    if escaped[:1] in (" ", "#"):
        escaped = "\\" + escaped
    if value.endswith(" ") and len(value) > 1:
        escaped = escaped[:-1] + "\\ "
    return f"{_KEYWORDS.get(name, name)}={escaped}"


@frozen
class _Rule:
    """A mapping rule. ``pattern`` is None for the whole subject, unchanged."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        if self.pattern is None:
            return subject
        match = self.pattern.fullmatch(subject)
        if match is None:
            return None
        return _CASES[self.case](_REFERENCE.sub(lambda each: _group(match, each), self.replacement))


def _group(match: re.Match[str], reference: re.Match[str]) -> str:
    """Return the group of a reference.

    Digits beyond the last group are literal text, and so is a reference to no group.
    """
    if reference[1] is not None:
        return reference[1]
    number, rest = reference[2], ""
    while number and int(number) > len(match.groups()):
        number, rest = number[:-1], number[-1] + rest
    return f"{match[int(number)] or ''}{rest}" if number else reference[0]


@cache
def parse_mapping_rules(text: str) -> Callable[[str], str | None]:
    """Return a function that maps a subject to a user name, or None if no rule matches. Raises ``OptionError``."""
    rules = [_parse(each) for each in _SPLIT.split(text.strip()) if each]
    return lambda subject: next((name for rule in rules if (name := rule.apply(subject)) is not None), None)


def _parse(text: str) -> _Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise OptionError(source="BrokerConfig", option=MAPPING_RULES, value=text, reason="it is not a rule")
    if match[1]:
        return _Rule()
    try:
        return _Rule(re.compile(match[2]), match[3], match[4])
    except re.error as error:
        raise OptionError(source="BrokerConfig", option=MAPPING_RULES, value=text, reason=str(error)) from None
