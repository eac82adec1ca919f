"""A reader of Java class files: constants, enumeration constants and the static initializer. It never runs the class.

Covers only the parts of the format (chapter 4 of the Java Virtual Machine Specification) that `error_table` needs.
The file size bounds every read, and a 16-bit count bounds every loop.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from attrs import frozen

__all__ = ["ClassFile", "ClassFileError", "parse_class"]

_MAGIC: Final = 0xCAFEBABE
_ENUM_CONSTANT: Final = 0x4000
_LONG_CONSTANTS: Final = (5, 6)
"""Tags of long and double, which occupy two indexes in the table."""

Constant: TypeAlias = tuple[object, ...]
"""A constant: its tag and its parts; numbers other than values are indexes of further constants."""

_FORMATS: Final[Mapping[int, str]] = {
    3: ">i", 4: ">f", 5: ">q", 6: ">d", 7: ">H", 8: ">H", 9: ">HH", 10: ">HH", 11: ">HH", 12: ">HH", 15: ">BH",
    16: ">H", 17: ">HH", 18: ">HH", 19: ">H", 20: ">H",
}  # fmt: skip
"""Maps the tag of a constant to its parts (table 4.4-A). Text, tag 1, has a length."""


class ClassFileError(ValueError):
    """Bytes that are not a class file, or not one that this module supports."""


@frozen
class ClassFile:
    """The parts of a class. ``initializer`` is the bytecode of its static initializer, empty without one."""

    constants: tuple[Constant, ...]
    parent: str | None
    enum_constants: tuple[str, ...]
    initializer: bytes
    bootstrap: tuple[tuple[int, ...], ...]

    def text(self, place: int) -> str:
        """Return the text of a text constant, or of the one that a class or string constant refers to."""
        constant = self.constant(place)
        if constant[:1] in ((7,), (8,)):
            constant = self.constant(_place(constant, 1))
        if constant[:1] != (1,):
            raise ClassFileError(f"constant {place} is not text")
        return str(constant[1])

    def constant(self, place: int) -> Constant:
        """Return the constant at an index; raise ``ClassFileError`` if it does not exist."""
        if not 0 < place < len(self.constants):
            raise ClassFileError(f"no constant {place}")
        return self.constants[place]

    def member(self, place: int) -> tuple[str, str]:
        """Return the class and the name of a field or method."""
        owner, described = (_place(self.constant(place), part) for part in (1, 2))
        return self.text(owner), self.text(_place(self.constant(described), 1))

    def created_by(self, place: int) -> str | None:
        """Return the class whose constructor a lambda is, ``Name::new``; None for any other ``invokedynamic``."""
        arguments = self.bootstrap[_place(self.constant(place), 1)]
        handles = [each for each in map(self.constant, arguments) if each[0] == 15 and each[1] == 8]
        return self.member(_place(handles[0], 2))[0] if handles else None


def _place(constant: Constant, part: int) -> int:
    place = constant[part] if part < len(constant) else None
    if not isinstance(place, int):
        raise ClassFileError("a constant refers to none")
    return place


def parse_class(data: bytes) -> ClassFile:
    """Read a class file; raise ``ClassFileError`` if it is not one, or is truncated."""
    try:
        return _parsed(_Cursor(data))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ClassFileError(f"not a whole class file: {error}") from None


def _parsed(cursor: _Cursor) -> ClassFile:
    magic, _, _ = cursor.take(">IHH")
    if magic != _MAGIC:
        raise ClassFileError("not a class file: it starts with other bytes")
    constants = tuple(_constants(cursor))
    _, _, parent, interfaces = cursor.take(">HHHH")
    cursor.skip(2 * interfaces)
    pool = ClassFile(constants, None, (), b"", ())
    fields = list(_members(cursor, pool))
    methods = list(_members(cursor, pool))
    code = next((attributes.get("Code", b"") for _, name, attributes in methods if name == "<clinit>"), b"")
    bootstrap = _attributes(cursor, pool).get("BootstrapMethods", b"\0\0")
    return ClassFile(
        constants,
        pool.text(parent) if parent else None,
        tuple(name for flags, name, _ in fields if flags & _ENUM_CONSTANT),
        _Cursor(code).bytecode() if code else b"",
        tuple(_bootstrap(_Cursor(bootstrap))),
    )


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return values

    def count(self) -> range:
        return range(self.take(">H")[0])

    def skip(self, size: int) -> bytes:
        data = self._data[self._at : self._at + size]
        if len(data) < size:
            raise IndexError(f"{size} bytes are announced and {len(data)} left")
        self._at += size
        return data

    def bytecode(self) -> bytes:
        _, _, size = self.take(">HHI")
        return self.skip(size)


def _constants(cursor: _Cursor) -> Iterator[Constant]:
    """Yield the table of constants. Its first index, and the index after a long or double, are unused."""
    yield ()
    left = cursor.take(">H")[0] - 1
    while left > 0:
        (tag,) = cursor.take(">B")
        if tag != 1 and tag not in _FORMATS:
            raise ClassFileError(f"unknown constant {tag}")
        yield (tag, _text(cursor)) if tag == 1 else (tag, *cursor.take(_FORMATS[tag]))
        left -= 1
        if tag in _LONG_CONSTANTS:
            yield ()
            left -= 1


def _text(cursor: _Cursor) -> str:
    return cursor.skip(cursor.take(">H")[0]).decode("utf-8", "surrogatepass")


def _members(cursor: _Cursor, pool: ClassFile) -> Iterator[tuple[int, str, Mapping[str, bytes]]]:
    """Yield the flags, the name and the attributes of each field, or of each method."""
    for _ in cursor.count():
        flags, name, _ = cursor.take(">HHH")
        yield flags, pool.text(name), _attributes(cursor, pool)


def _attributes(cursor: _Cursor, pool: ClassFile) -> Mapping[str, bytes]:
    found = {}
    for _ in cursor.count():
        name, size = cursor.take(">HI")
        found[pool.text(name)] = cursor.skip(size)
    return found


def _bootstrap(cursor: _Cursor) -> Iterator[tuple[int, ...]]:
    """Yield the arguments of each bootstrap method."""
    for _ in cursor.count():
        _, size = cursor.take(">HH")
        yield cursor.take(f">{size}H")
