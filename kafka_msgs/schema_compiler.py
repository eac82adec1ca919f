"""``compile_schema`` and ``compile_schemas``: message classes from definitions, at run time.

The compiler is a separate package, which comes with the ``generator`` extra. It is imported at the first call.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from typing import Any

from kafka_msgs.message import Message

__all__ = ["compile_schema", "compile_schemas"]


def compile_schema(
    definition: str | PathLike[str], *, lenient: bool = False, bindings: Mapping[str, str] | None = None
) -> type[Message]:
    """Return the message class of a definition, given as its JSON text or as the path of a file.

    A string is a path if it is one line without braces that ends in a suffix such as ``.json``; any other is text.
    ``lenient`` accepts what people write on KIP pages: non-breaking spaces, and placeholders such as ``TBD``, whose
    values ``bindings`` gives. Nested structs are attributes of the returned class's module, which
    ``inspect.getmodule`` finds. Raises ``SchemaError`` with the location of the fault, and ``MissingExtraError``
    without the ``generator`` extra.
    """
    runtime: Any = import_module("kafka_msgs_generator.runtime_compiler")
    compiled: type[Message] = runtime.compile_schema(definition, lenient=lenient, bindings=bindings)
    return compiled


def compile_schemas(
    definition: str | PathLike[str], *, lenient: bool = False, bindings: Mapping[str, str] | None = None
) -> list[type[Message]]:
    """Return the message classes of all definitions in a text, a file or a directory.

    A file contains one definition, or with ``lenient`` one or more. A directory, always a ``Path``, is read recursively
    and may be the output of ``kafka-msgs-generator import``. Retired messages are omitted unless all are retired. Takes
    the same arguments and raises the same errors as ``compile_schema``.
    """
    runtime: Any = import_module("kafka_msgs_generator.runtime_compiler")
    compiled: list[type[Message]] = runtime.compile_schemas(definition, lenient=lenient, bindings=bindings)
    return compiled
