"""Compiles a definition at run time: from its text to a working class, without writing files.

The class comes from the same text that the command would write. As long as the class is alive, its module is
registered like an imported one, and its text with ``linecache``. So ``inspect``, tracebacks and debuggers show the
text, and values can be pickled. The registrations do not keep the class alive, so a service may compile any number of
definitions.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Mapping
from inspect import get_annotations
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from weakref import WeakValueDictionary, finalize

from kafka_msgs.errors import SchemaError
from kafka_msgs.schema import MessageStruct, Struct
from kafka_msgs_generator.compiler import (
    Binding,
    Compiled,
    CompileOptions,
    compile_definitions,
    compile_file,
    compile_text,
    compile_texts,
    definition_files,
)
from kafka_msgs_generator.emit import message_module

__all__ = ["compile_schema", "compile_schemas"]

_serial: Final = count(1)
_FILE_NAME: Final = re.compile(r"[^{}\n\0]*\.[A-Za-z]\w*")


def compile_schema(
    text_or_path: str | Path, *, lenient: bool = False, bindings: Mapping[str, str] | None = None
) -> type[MessageStruct]:
    """Return the message class that a definition describes.

    ``text_or_path`` is the definition's text, or a file's path: a ``Path``, or one line without braces that ends in a
    suffix such as ``.json``. ``lenient`` and ``bindings`` (placeholder word to value) accept hand-written pages, like
    the command's options. The module of the class exists only in this process, so other processes cannot unpickle its
    values. Raises ``SchemaError`` for a definition that breaks a rule or describes a retired message, ``OSError`` for
    an unreadable file, and ``MissingExtraError`` without Jinja2.
    """
    reading, path = _reading(lenient, bindings), _path(text_or_path)
    if path is None:
        (cls,) = _in_force([compile_text(str(text_or_path), None, reading)])
    else:
        (cls,) = _in_force([compile_file(path, reading, path.resolve().parent.name)])
    return cls


def compile_schemas(
    text_or_path: str | Path, *, lenient: bool = False, bindings: Mapping[str, str] | None = None
) -> list[type[MessageStruct]]:
    """Return the message classes of all definitions in a text, a file or a directory.

    A file contains one definition, or with ``lenient`` one or more. A directory, always a ``Path``, is read recursively
    and may be the output of the command ``import``. Retired messages are omitted unless all are retired. Takes the same
    arguments and raises the same errors as ``compile_schema``.
    """
    reading, path = _reading(lenient, bindings), _path(text_or_path)
    if path is None:
        return _in_force(compile_texts(str(text_or_path), None, reading))
    files = definition_files([path])
    if not files:
        raise SchemaError("no definitions (*.json) here", source=str(path))
    return _in_force([each for origin, file in files for each in compile_definitions(file, reading, origin)])


def _reading(lenient: bool, bindings: Mapping[str, str] | None) -> CompileOptions:
    return CompileOptions(lenient=lenient, bindings=[Binding(word, value) for word, value in (bindings or {}).items()])


def _path(text_or_path: str | Path) -> Path | None:
    if isinstance(text_or_path, str) and not _FILE_NAME.fullmatch(text_or_path):
        return None
    return Path(text_or_path)


def _in_force(compiled: list[Compiled]) -> list[type[MessageStruct]]:
    """Return the classes of the messages that are not retired; raise ``SchemaError`` if all of them are."""
    found = [each for each in compiled if not each.message.retired]
    if not found:
        raise compiled[0].site.error("V8", "a retired message has no version to compile", "validVersions")
    return [_execute(each) for each in found]


class _Module(ModuleType):
    """The module of a compiled definition in ``sys.modules``, with weak references to its classes."""

    def __init__(self, name: str, file: str, classes: Mapping[str, type[Struct]]) -> None:
        super().__init__(name)
        self.__file__ = file
        self._classes = WeakValueDictionary(classes)

    def __getattr__(self, name: str) -> Any:
        found = self._classes.get(name)
        if found is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return found

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self._classes])


def _execute(compiled: Compiled) -> type[MessageStruct]:
    text = message_module(compiled.message, compiled.source)
    name = f"{compiled.message.name}_{next(_serial)}"
    file = f"<kafka-msgs {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": name, "__file__": file}
    exec(compile(text, file, "exec"), namespace)
    structs = [compiled.message.name, *(struct.name for struct in compiled.message.structs)]
    for each in structs:  # typing resolves names in modules, but this module does not keep its classes alive
        namespace[each].__annotations__.update(get_annotations(namespace[each], globals=namespace, eval_str=True))
    sys.modules[name] = _Module(name, file, {each: namespace[each] for each in structs})
    cls: type[MessageStruct] = namespace[compiled.message.name]
    finalize(cls, _forget, name).atexit = False
    return cls


def _forget(name: str) -> None:
    """Remove the registrations of a module: the module, its text, and the texts of its attrs methods."""
    sys.modules.pop(name, None)
    for file in list(linecache.cache):
        if file == f"<kafka-msgs {name}>" or (file.startswith("<attrs") and f" {name}." in file):
            linecache.cache.pop(file, None)
