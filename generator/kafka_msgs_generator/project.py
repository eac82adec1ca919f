"""The output of ``generate``: this project's generated code, from ``message_defs`` and the codec's table of ops.

Defines the mapping of definition directories to packages. All other code is shared with user definitions.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

from kafka_msgs_generator.c_header import layouts_header, ops_header
from kafka_msgs_generator.compiler import Compiled, CompileOptions, Progress, compile_paths
from kafka_msgs_generator.glossary import load_glossary
from kafka_msgs_generator.history import read_history
from kafka_msgs_generator.output import Changes, plan
from kafka_msgs_generator.package_files import api_keys_module, drafts_package, error_codes_module, message_package

__all__ = ["project_changes"]


def project_changes(definitions: Path, package: Path, progress: Progress | None = None) -> list[Changes]:
    """Return the differences between the package ``kafka_msgs`` and the output for ``message_defs``, per directory.

    Raises `InvalidDefinitionsError` if definitions break rules.
    """
    reading = CompileOptions(documentation=load_glossary(definitions / "glossary"))
    origins = sorted(path for path in (definitions / "kafka").iterdir() if path.is_dir())
    compiled = compile_paths(origins, reading, partial=False, progress=progress)
    release = tomllib.loads((definitions / "SOURCE.toml").read_text(encoding="utf-8"))["release"]
    doc = f"Every message of Apache Kafka {release}; importing one name loads that message's module alone."
    errors = json.loads((definitions / "errors.json").read_text(encoding="utf-8"))
    return [
        plan(package / "messages", message_package(compiled, doc, release=release, history=read_history(definitions))),
        plan(package / "drafts", drafts_package(dict(_drafts(definitions / "drafts", reading)))),
        plan(package, {"api_keys.py": api_keys_module(compiled), "error_codes.py": error_codes_module(errors)}),
        plan(package / "_core", {"layouts.h": layouts_header(), "ops.h": ops_header()}),
    ]


def _drafts(directory: Path, reading: CompileOptions) -> Iterator[tuple[str, tuple[str, list[Compiled]]]]:
    for about in sorted(directory.glob("*/draft.toml")):
        title = tomllib.loads(about.read_text(encoding="utf-8"))["title"]
        yield about.parent.name, (title, compile_paths([about.parent], reading, partial=True))
