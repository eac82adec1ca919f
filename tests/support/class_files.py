"""Java class files built by hand: an enumeration of error codes as javac compiles it, and classes with a parent."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

__all__ = ["empty_class", "errors_class", "errors_of_kafka"]

_ERRORS = "org/apache/kafka/common/protocol/Errors"
_EXCEPTIONS = "org/apache/kafka/common/errors/"


class _Pool:
    """A growing constant pool."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []

    def add(self, entry: bytes) -> int:
        if entry not in self.entries:
            self.entries.append(entry)
        return self.entries.index(entry) + 1

    def text(self, text: str) -> int:
        return self.add(struct.pack(">BH", 1, len(text)) + text.encode())

    def name(self, tag: int, text: str) -> int:
        return self.add(struct.pack(">BH", tag, self.text(text)))

    def member(self, tag: int, owner: str, name: str, kind: str) -> int:
        described = self.add(struct.pack(">BHH", 12, self.text(name), self.text(kind)))
        return self.add(struct.pack(">BHH", tag, self.name(7, owner), described))

    def whole(self) -> bytes:
        return struct.pack(">H", len(self.entries) + 1) + b"".join(self.entries)


def _file(pool: _Pool, name: str, parent: str, members: bytes) -> bytes:
    head = struct.pack(">HHHH", 0x21, pool.name(7, name), pool.name(7, parent), 0)
    return struct.pack(">IHH", 0xCAFEBABE, 0, 52) + pool.whole() + head + members


def empty_class(name: str, parent: str) -> bytes:
    """Return a class without members."""
    return _file(_Pool(), name, parent, struct.pack(">HHH", 0, 0, 0))


def errors_class(errors: Sequence[tuple[str, int, str | None]], *, before: bytes = b"") -> bytes:
    """Return Kafka's enumeration with each error's name, code and exception, preceded by the bytecode ``before``."""
    pool = _Pool()
    code, fields, bootstrap = before, b"", b""
    for number, (name, value, exception) in enumerate(errors):
        field = pool.member(9, _ERRORS, name, f"L{_ERRORS};")
        text = pool.name(8, name)
        lambda_ = struct.pack(
            ">BHH", 18, number, pool.add(struct.pack(">BHH", 12, pool.text("apply"), pool.text("()")))
        )
        code += struct.pack(">BHBBH", 0xBB, pool.name(7, _ERRORS), 0x59, 0x13, text)
        code += struct.pack(">BhBhB", 0x11, number, 0x11, value, 0x01)
        code += struct.pack(">BHHBHBH", 0xBA, pool.add(lambda_), 0, 0xB7, 1, 0xB3, field)
        fields += struct.pack(">HHHH", 0x4019, pool.text(name), pool.text("LErrors;"), 0)
        kind, owner = (6, _ERRORS) if exception is None else (8, _EXCEPTIONS + exception)
        handle = pool.add(struct.pack(">BBH", 15, kind, pool.member(10, owner, "<init>", "()V")))
        bootstrap += struct.pack(">HHH", 1, 1, handle)
    code += b"\xb1"
    attribute = struct.pack(">HHI", 7, 0, len(code)) + code + struct.pack(">HH", 0, 0)
    method = struct.pack(">HHHHHI", 8, pool.text("<clinit>"), pool.text("()V"), 1, pool.text("Code"), len(attribute))
    methods = struct.pack(">H", len(errors)) + fields + struct.pack(">H", 1) + method + attribute
    table = struct.pack(">H", len(errors)) + bootstrap
    methods += struct.pack(">HHI", 1, pool.text("BootstrapMethods"), len(table)) + table
    return _file(pool, _ERRORS, "java/lang/Enum", methods)


def errors_of_kafka(errors: Mapping[str, tuple[int, bool]]) -> dict[str, bytes]:
    """Return the class files for an error table (name to code and whether it is retriable) by their path in a jar."""
    rows = [(name, code, f"{name.title()}Exception") for name, (code, _) in errors.items()]
    files = {f"{_ERRORS}.class": errors_class(rows)}
    for (_, retriable), (_, _, exception) in zip(errors.values(), rows, strict=True):
        parent = _EXCEPTIONS + ("RetriableException" if retriable else "ApiException")
        files[f"{_EXCEPTIONS}{exception}.class"] = empty_class(_EXCEPTIONS + exception, parent)
    return files
