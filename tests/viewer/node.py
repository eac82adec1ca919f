"""The page's decoder in Node, which answers questions as lines of JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_msgs.viewer.plans import embedded_messages, header_plans, internal_topics

__all__ = ["decode_all", "facts"]

_PROGRAM: Final = """
import { createInterface } from "node:readline";
import { layoutOf, readStruct } from "./decode.js";
import { readBatches } from "./records.js";
import { jsonValue, pythonForm, writeJson } from "./forms.js";
const asked = createInterface({ input: process.stdin });
let facts;
const bytesOf = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const parts = (plan) => plan.records
  ? [["records", "", (cursor, field) => { cursor.topic = plan.topic ?? ""; readBatches(cursor, field, cursor.end); }]]
  : plan.map((struct) => [struct.x, "", (cursor, field) => void readStruct(cursor, struct, field)]);
const shape = (layout) => layout.leaves.map((leaf) => [leaf.start, leaf.end, leaf.name, leaf.error ?? null,
  leaf.opened ? shape(leaf.opened) : null]);
const trees = (field, inside) => field.kids.flatMap((kid) => [
  ...(inside || kid.name === "decoded" ? [[kid.name, kid.value, kid.error ?? null]] : []),
  ...trees(kid, inside || kid.name === "decoded")]);
for await (const line of asked) {
  const question = JSON.parse(line);
  if (question.plan === undefined) { facts = question.facts; continue; }
  const known = { ...facts, ...question.facts };
  const layout = layoutOf(bytesOf(question.bytes), known, parts(question.plan), (question.contents ?? []).map(bytesOf));
  const whole = !layout.leaves.some((leaf) => leaf.name === "(not decoded)" && leaf.parent === layout.root);
  const last = layout.root.kids.filter((kid) => kid.role === "struct").at(-1);
  const json = whole && last && !question.plan.records ? writeJson(jsonValue(last)) : null;
  const python = question.python && last ? pythonForm(question.version, last) : null;
  console.log(JSON.stringify({ leaves: shape(layout), trees: trees(layout.root, false), json, python }));
}
"""


def facts() -> dict[str, Any]:
    """Return what the decoder needs besides plans."""
    topics = ("__consumer_offsets", "__transaction_state", "__cluster_metadata", "__share_group_state")
    embedded, internal = embedded_messages(), internal_topics(topics)
    return {"embedded": embedded, "internal": internal, "headers": header_plans(), "topicIds": {}, "errors": {}}


def decode_all(directory: Path, questions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trees of buffers, decoded by the page's own modules."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("NOT RUN: node not found")
    for name in ("decode.js", "records.js", "forms.js"):
        (directory / name).write_bytes((files("kafka_msgs.viewer") / "assets" / name).read_bytes())
    (directory / "package.json").write_text('{"type": "module"}')
    (directory / "program.js").write_text(_PROGRAM)
    lines = "".join(f"{json.dumps(each)}\n" for each in ({"facts": facts()}, *questions))
    done = subprocess.run([node, "program.js"], cwd=directory, input=lines, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]
