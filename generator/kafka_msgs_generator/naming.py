"""Conversion of Kafka's names to Python names of attributes and modules, and the names reserved by generated code."""

from __future__ import annotations

import keyword
import re
from typing import Final

__all__ = ["RESERVED_CLASS_NAMES", "attribute_name", "json_name", "module_name", "snake_case"]

RESERVED_CLASS_NAMES: Final = frozenset(
    {"ClassVar", "False", "INFO", "KeyedMessageInfo", "MessageInfo", "None", "Struct", "True", "UUID", "ZERO_UUID"}
    | {"CoordinatorKey", "CoordinatorValue", "DataMessage", "HeaderMessage", "MetadataRecord", "Request", "Response"}
    | {"API_KEYS", "MODULES", "ORIGINS", "RELEASE", "TYPE_CHECKING"}
)
"""Names used by a generated module or package, which its classes cannot have."""

_RESERVED_ATTRIBUTES: Final = frozenset(
    {"bool", "bytes", "float", "int", "memoryview", "str", "tuple"}  # stand in annotations and defaults
    | {"field", "frozen", "self"}  # called in, or by, a class body
    | {"decode", "encode", "from_json", "read", "response_class", "to_json", "value_class"}  # the classes' own
    | {"unknown_tagged_fields"}
)
_WORD_START = re.compile(r"(?<=[^A-Z_])(?=[A-Z])")


def snake_case(name: str) -> str:
    """Insert an underscore before each capital that does not follow another one, and convert to lower case.

    >>> snake_case("V3AndBelowTopics"), snake_case("KRaftVersion"), snake_case("groupId"), snake_case("FORTRAN")
    ('v3_and_below_topics', 'kraft_version', 'group_id', 'fortran')
    """
    return _WORD_START.sub("_", name).lower()


def attribute_name(name: str) -> str:
    """Return the attribute name of a field. Names reserved by Python or the classes get an underscore.

    >>> attribute_name("TopicName"), attribute_name("From"), attribute_name("Read"), attribute_name("Type")
    ('topic_name', 'from_', 'read_', 'type')
    """
    snake = snake_case(name)
    return f"{snake}_" if keyword.iskeyword(snake) or snake in _RESERVED_ATTRIBUTES else snake


def module_name(name: str) -> str:
    """Return the module name of a message.

    >>> module_name("OffsetFetchRequest"), module_name("Import")
    ('offset_fetch_request', 'import_')
    """
    snake = snake_case(name)
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def json_name(name: str) -> str:
    """Return a field's name as Kafka's JSON form spells it.

    >>> json_name("TopicName")
    'topicName'
    """
    return name[:1].lower() + name[1:]
