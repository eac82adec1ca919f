"""Compilation of files to messages: finds definitions, runs the stages on each, and checks the complete set.

Defines the rules about several definitions (V69, V70, N1). `kafka_msgs_generator.json_tree` parses text,
`kafka_msgs_generator.lower` resolves one definition, and `kafka_msgs_generator.package_files` writes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Final

from attrs import frozen

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator.ir import UNDOCUMENTED, Documentation, Message
from kafka_msgs_generator.json_tree import Node, parse_definition, parse_definitions
from kafka_msgs_generator.lower import lower_message
from kafka_msgs_generator.naming import module_name
from kafka_msgs_generator.source_object import SourceObject
from kafka_msgs_generator.spec import KEYED_KINDS, MessageSpec, read_message

__all__ = [
    "PARTNERS",
    "Binding",
    "CompileOptions",
    "Compiled",
    "InvalidDefinitionsError",
    "compile_definitions",
    "compile_file",
    "compile_paths",
    "compile_text",
    "compile_texts",
    "definition_files",
]

PARTNERS: Final = {"request": "response", "coordinator-key": "coordinator-value"}
"""The kind of the partner message, which depends on it, by kind of message."""

Progress = Callable[[int, int], None]
_SUFFIXES: Final = {"request": "Request", "response": "Response"}


@frozen
class Binding:
    """The value of a placeholder word, in the definitions whose file stem matches the pattern ``files``."""

    word: str
    value: str
    files: str = "*"


@frozen
class CompileOptions:
    """The options for reading definitions: strict, or lenient with values for placeholder words; and documentation."""

    lenient: bool = False
    bindings: Sequence[Binding] = ()
    documentation: Documentation = UNDOCUMENTED

    def words(self, source: str | None) -> Mapping[str, str]:
        """Return the values of the placeholder words in one definition. If a word has several values, the last wins."""
        stem = PurePosixPath(source or "").stem
        return {binding.word: binding.value for binding in self.bindings if fnmatchcase(stem, binding.files)}


@frozen(eq=False)
class Compiled:
    """A compiled definition. ``origin`` is the directory that it belongs to, ``source`` its file below that."""

    message: Message
    spec: MessageSpec
    origin: str
    source: str

    @property
    def site(self) -> SourceObject:
        """The place of the definition, for errors."""
        return self.spec.site


class InvalidDefinitionsError(Exception):
    """Everything wrong with a set of definitions: ``errors`` holds one ``SchemaError`` for each bad file."""

    def __init__(self, errors: Sequence[SchemaError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in errors))


def compile_text(
    text: str, source: str | None = None, reading: CompileOptions | None = None, origin: str = ""
) -> Compiled:
    """Compile one definition; raise ``SchemaError`` when it breaks a rule."""
    reading = reading or CompileOptions()
    root = parse_definition(text, source, lenient=reading.lenient, bindings=reading.words(source))
    return _compile(root, source, reading, origin)


def compile_texts(text: str, source: str | None, reading: CompileOptions, origin: str = "") -> list[Compiled]:
    """Compile every definition in a text. Only lenient reading allows several."""
    roots = parse_definitions(text, source, lenient=reading.lenient, bindings=reading.words(source))
    return [_compile(root, source, reading, origin) for root in roots]


def compile_file(path: Path, reading: CompileOptions, origin: str) -> Compiled:
    """Compile the one definition in a file; ``SchemaError`` names it by ``origin`` and file name."""
    source = f"{origin}/{path.name}"
    return compile_text(_read(path, source), source, reading, origin)


def compile_definitions(path: Path, reading: CompileOptions, origin: str) -> list[Compiled]:
    """Compile every definition in a file, as ``compile_texts`` does; ``SchemaError`` names the file."""
    source = f"{origin}/{path.name}"
    return compile_texts(_read(path, source), source, reading, origin)


def _read(path: Path, source: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaError(f"not UTF-8: {error.reason} at byte {error.start}", source=source, rule="V3") from None


def _compile(root: Node, source: str | None, reading: CompileOptions, origin: str) -> Compiled:
    spec = read_message(root, source)
    return Compiled(lower_message(spec, reading.documentation), spec, origin, source or f"{spec.name}.json")


def compile_paths(
    paths: Sequence[Path], reading: CompileOptions, *, partial: bool, progress: Progress | None = None
) -> list[Compiled]:
    """Compile the definitions at ``paths``, files or directories, as one set.

    With ``partial``, messages whose partner is missing are accepted. ``progress`` is called with the number of finished
    definitions and their total. Raises `InvalidDefinitionsError` with one error for each bad file, or with the first
    error that only the complete set reveals.
    """
    files = definition_files(paths)
    if not files:
        nothing = SchemaError("no definitions (*.json) here", source=", ".join(str(path) for path in paths))
        raise InvalidDefinitionsError([nothing])
    compiled: list[Compiled] = []
    errors: list[SchemaError] = []
    for number, (origin, file) in enumerate(files, 1):
        try:
            compiled += compile_definitions(file, reading, origin)
        except SchemaError as error:
            errors.append(error)
        if progress is not None:
            progress(number, len(files))
    if errors:
        raise InvalidDefinitionsError(errors)
    try:
        _check_set(compiled, partial)
    except SchemaError as error:
        raise InvalidDefinitionsError([error]) from None
    return compiled


def definition_files(paths: Iterable[Path]) -> list[tuple[str, Path]]:
    """Return the definitions at ``paths``, files or directories read recursively, each once and with its origin.

    In a directory written by the import, definitions are below ``kafka/``; other JSON there is not a definition.
    """
    found = [_root(path).rglob("*.json") if path.is_dir() else [path] for path in paths]
    files = list(dict.fromkeys(file.resolve() for group in found for file in sorted(group)))
    origins = _origins({file.parent for file in files})
    return [(origins[file.parent], file) for file in files]


def _root(directory: Path) -> Path:
    return directory / "kafka" if (directory / "SOURCE.toml").is_file() else directory


def _origins(directories: Collection[Path]) -> dict[Path, str]:
    """Name each directory by the shortest path suffixes that distinguish all of them."""
    for depth in count(1):
        names = {path: "/".join(path.parts[-depth:]) for path in directories}
        if len(set(names.values())) == len(directories):
            break
    return names


def _check_set(compiled: Sequence[Compiled], partial: bool) -> None:
    _check_unique(compiled)
    if not partial:
        _check_pairs(compiled)


def _check_unique(compiled: Iterable[Compiled]) -> None:
    """Raise ``SchemaError`` when two definitions share a module (N1), or a key within their origin and kind (V69)."""
    names: dict[str, Compiled] = {}
    keys: dict[tuple[str, str, int], Compiled] = {}
    for item in compiled:
        message = item.message
        other = names.setdefault(module_name(message.name), item)
        if other is not item:
            reason = f"{other.message.name} in {other.source} becomes the same module, {module_name(message.name)}"
            raise item.site.error("N1", reason, "name")
        if message.kind not in KEYED_KINDS or message.api_key is None:
            continue
        other = keys.setdefault((item.origin, message.kind, message.api_key), item)
        if other is not item:
            reason = f"the {message.kind} {other.message.name} has the same key, {message.api_key}"
            raise item.site.error("V69", reason, "apiKey")


def _check_pairs(compiled: Sequence[Compiled]) -> None:
    """Raise ``SchemaError`` (V70) when a message that needs a partner of the same origin and key lacks it."""
    keyed = {(item.origin, item.message.kind, item.message.api_key): item for item in compiled}
    partner_kinds = PARTNERS | {second: first for first, second in PARTNERS.items()}
    for (origin, kind, key), item in keyed.items():
        if kind not in partner_kinds:
            continue
        partner = keyed.get((origin, partner_kinds[kind], key))
        if partner is None:
            raise item.site.error("V70", f"no {partner_kinds[kind]} has the key {key} of this {kind}", "apiKey")
        _check_suffixes(item, partner)


def _check_suffixes(item: Compiled, partner: Compiled) -> None:
    """Check that a request is called X + Request, and its response X + Response."""
    suffix = _SUFFIXES.get(item.message.kind)
    if suffix is None:
        return
    if not item.message.name.endswith(suffix):
        raise item.site.error("V70", f"a {item.message.kind}'s name ends in {suffix!r}", "name")
    stem = item.message.name.removesuffix(suffix)
    if stem != partner.message.name.removesuffix(_SUFFIXES[partner.message.kind]):
        reason = f"{partner.message.name} has its key {item.message.api_key} but not its name"
        raise item.site.error("V70", reason, "name")
