// @ts-check
// Record batches and message sets as trees of fields with their bytes. Compressed content comes from the page.

import { DecodeFault, hex, installRecords, layoutOf, readContent, readStruct, readVersioned } from "./decode.js";

/** @typedef {import("./decode.js").Cursor} Cursor */
/** @typedef {import("./decode.js").Field} Field */

const CODECS = ["none", "gzip", "snappy", "lz4", "zstd"];
const HEADER = [
  ["baseOffset", "int64"], ["batchLength", "int32"], ["partitionLeaderEpoch", "int32"], ["magic", "int8"],
  ["crc", "uint32"], ["attributes", "int16"], ["lastOffsetDelta", "int32"], ["baseTimestamp", "int64"],
  ["maxTimestamp", "int64"], ["producerId", "int64"], ["producerEpoch", "int16"], ["baseSequence", "int32"],
  ["recordsCount", "int32"],
]; // prettier-ignore
const MAGIC_AT = 16;
const OVERHEAD = 12;
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Add the batches of a records field or of a segment.
 * @param {Cursor} cursor @param {Field} field @param {number} end
 */
export function readBatches(cursor, field, end) {
  for (let number = 0; cursor.at < end; number++) {
    const left = end - cursor.at;
    const size = left > MAGIC_AT ? cursor.view.getInt32(cursor.at + 8) + OVERHEAD : 0;
    if (left <= MAGIC_AT || size > left) {
      cursor.at = end;
      cursor.leaf(field, "(partial batch)", "bytes", cursor.bytes.subarray(cursor.done, end));
      return;
    }
    if (size <= MAGIC_AT) {
      throw new DecodeFault(`a batch of ${size} bytes`);
    }
    const batch = cursor.open(field, `batch ${number}`, "record batch", "part");
    cursor.end = cursor.at + size;
    (cursor.view.getInt8(cursor.at + MAGIC_AT) < 2 ? readEntry : readBatch)(cursor, batch);
    if (cursor.at !== cursor.end) {
      cursor.at = cursor.end;
      cursor.leaf(batch, "(not decoded)", "bytes", cursor.bytes.subarray(cursor.done, cursor.at));
    }
    cursor.close(batch);
    cursor.end = end;
  }
}

/** @param {Cursor} cursor @param {Field} batch */
function readBatch(cursor, batch) {
  /** @type {Record<string, any>} */
  const values = {};
  for (const [name, type] of HEADER) {
    values[name] = cursor.fixed(type);
    cursor.leaf(batch, name, type, values[name]);
  }
  const codec = values.attributes & 7;
  const isControl = (values.attributes & 0x20) !== 0;
  batch.type = `${values.recordsCount} records${codec ? `, ${CODECS[codec] ?? codec}` : ""}${isControl ? ", control" : ""}`;
  if (codec) {
    readCompressed(cursor, batch, CODECS[codec] ?? `codec ${codec}`, (inner, field) =>
      readAll(inner, field, values, isControl),
    );
  } else {
    readAll(cursor, batch, values, isControl);
  }
}

/**
 * Add the compressed bytes, with the tree of the decompressed content if the page contains it.
 * @param {Cursor} cursor @param {Field} parent @param {string} codec @param {(cursor: Cursor, field: Field) => void} read
 */
function readCompressed(cursor, parent, codec, read) {
  const bytes = cursor.take(cursor.left, "records");
  const leaf = cursor.leaf(parent, "records", `compressed with ${codec}`, bytes);
  const content = cursor.contents.shift();
  if (content?.length) {
    const topic = cursor.topic;
    leaf.opened = layoutOf(content, cursor.facts, [
      ["records", `${content.length} bytes`, (inner, field) => {
        inner.topic = topic;
        read(inner, field);
      }],
    ]);
    leaf.opened.where = leaf;
  }
}

/** @param {Cursor} cursor @param {Field} parent @param {Record<string, any>} header @param {boolean} isControl */
function readAll(cursor, parent, header, isControl) {
  for (let number = 0; number < header.recordsCount && cursor.left > 0; number++) {
    readRecord(cursor, parent, number, header, isControl);
  }
}

/**
 * @param {Cursor} cursor @param {Field} parent @param {number} number @param {Record<string, any>} header
 * @param {boolean} isControl
 */
function readRecord(cursor, parent, number, header, isControl) {
  const record = cursor.open(parent, `record ${number}`, "record", "part");
  const size = Number(cursor.varlong());
  cursor.leaf(record, "length", "varint", size);
  const [end, outer] = [cursor.at + size, cursor.end];
  if (size < 0 || end > outer) {
    throw new DecodeFault(`a record of ${size} bytes, ${cursor.left} left`);
  }
  cursor.end = end;
  cursor.leaf(record, "attributes", "int8", cursor.fixed("int8"));
  cursor.leaf(record, "timestampDelta", "varlong", cursor.varlong());
  const delta = cursor.varlong();
  cursor.leaf(record, "offsetDelta", "varint", delta);
  record.type = `offset ${BigInt(header.baseOffset) + BigInt(delta)}`;
  const key = readPayload(cursor, record, "key", isControl ? null : keyReader(cursor));
  const number16 = key.value instanceof Uint8Array && key.value.length > 1 ? (key.value[0] << 8) | key.value[1] : -1;
  readPayload(cursor, record, "value", isControl ? null : valueReader(cursor, number16));
  readHeaders(cursor, record);
  if (cursor.at !== end) {
    throw new DecodeFault(`a record of ${size} bytes has ${end - cursor.at} bytes left`);
  }
  cursor.end = outer;
  cursor.close(record);
}

/** @param {Cursor} cursor @param {Field} record */
function readHeaders(cursor, record) {
  const count = Number(cursor.varlong());
  cursor.leaf(record, "headers", "count", count);
  if (count < 0 || 2 * count > cursor.left) {
    throw new DecodeFault(`${count} headers, ${cursor.left} bytes left`);
  }
  for (let number = 0; number < count; number++) {
    const header = cursor.open(record, `header ${number}`, "header", "part");
    readPayload(cursor, header, "key", null);
    readPayload(cursor, header, "value", null);
    cursor.close(header);
  }
}

/**
 * Add a key or a value after its length; its content is opened if a reader is given.
 * @param {Cursor} cursor @param {Field} parent @param {string} name
 * @param {((cursor: Cursor, field: Field) => void) | null} read
 */
function readPayload(cursor, parent, name, read) {
  const size = Number(cursor.varlong());
  if (size < 0) {
    return cursor.leaf(parent, name, "bytes", null);
  }
  const bytes = cursor.take(size, name);
  return openPayload(cursor, parent, name, bytes, read ?? registryReader(bytes));
}

/**
 * @param {Cursor} cursor @param {Field} parent @param {string} name @param {Uint8Array} bytes
 * @param {((cursor: Cursor, field: Field) => void) | null} read
 */
function openPayload(cursor, parent, name, bytes, read) {
  if (!read || !bytes.length) {
    return cursor.leaf(parent, name, "bytes", bytes);
  }
  cursor.at -= bytes.length;
  const field = readContent(cursor, parent, name, "bytes", bytes, read);
  field.role = "part";
  return field;
}

/** Return the reader of a payload with the prefix of a schema registry: a zero and a schema id. @param {Uint8Array} bytes */
function registryReader(bytes) {
  if (bytes.length < 6 || bytes[0] !== 0 || isText(bytes)) {
    return null;
  }
  const id = new DataView(bytes.buffer, bytes.byteOffset).getInt32(1);
  if (id <= 0 || id > 1e7) {
    return null;
  }
  return (/** @type {Cursor} */ cursor, /** @type {Field} */ field) => {
    cursor.leaf(field, "magic", "int8", cursor.fixed("int8"));
    cursor.leaf(field, "schemaId", "int32", cursor.fixed("int32"));
    cursor.leaf(field, "payload", "bytes", cursor.take(cursor.left, "payload"));
    if (cursor.facts.decoded) {
      addDecoded(cursor, field, cursor.facts.decoded[hex(bytes, "")]);
    }
  };
}

/**
 * A name, a text, and for objects and arrays their members.
 * @typedef {[string, string, Tree[]?]} Tree
 */

/** Add the decoded form of a payload, or the reason why it has none. @param {Cursor} cursor @param {Field} field @param {string | undefined} json */
function addDecoded(cursor, field, json) {
  const found = /** @type {Tree | string} */ (json ? JSON.parse(json) : cursor.facts.undecoded);
  if (typeof found === "string") {
    addTree(cursor, field, ["decoded", found], "JSON").error = found;
  } else {
    addTree(cursor, field, found, "JSON");
  }
}

/** Add a tree without bytes of its own. @param {Cursor} cursor @param {Field} parent @param {Tree} tree @param {string} type @returns {Field} */
function addTree(cursor, parent, [name, text, kids], type) {
  const field = cursor.close(cursor.open(parent, name, type, "part"));
  field.value = text;
  kids?.forEach((kid) => addTree(cursor, field, kid, ""));
  return field;
}

/** @param {Uint8Array} bytes */
function isText(bytes) {
  try {
    return !/[\0-\x08\x0e-\x1f]/.test(strictUtf8.decode(bytes));
  } catch {
    return false;
  }
}

/** @param {Cursor} cursor */
function keyReader(cursor) {
  const topic = cursor.facts.internal[cursor.topic];
  if (!topic || topic.framed) {
    return null;
  }
  return (/** @type {Cursor} */ inner, /** @type {Field} */ field) => {
    const number = Number(inner.fixed("int16"));
    inner.leaf(field, "type", "int16", number);
    const message = topic.keys[number];
    if (!message) {
      throw new DecodeFault(`record type ${number}`);
    }
    readStruct(inner, message.v["0"], inner.open(field, message.n, "key", "part"));
  };
}

/** @param {Cursor} cursor @param {number} number */
function valueReader(cursor, number) {
  const topic = cursor.facts.internal[cursor.topic];
  if (!topic) {
    return null;
  }
  if (topic.framed) {
    return (/** @type {Cursor} */ inner, /** @type {Field} */ field) => readFrame(inner, field, topic);
  }
  const message = topic.values[number];
  return message
    ? (/** @type {Cursor} */ inner, /** @type {Field} */ field) => readVersioned(inner, message, field)
    : null;
}

/** @param {Cursor} cursor @param {Field} field @param {import("./decode.js").InternalTopic} topic */
function readFrame(cursor, field, topic) {
  const [, type, version] = ["frameVersion", "type", "version"].map((name) => {
    const number = cursor.uvarint();
    cursor.leaf(field, name, "varint", number);
    return number;
  });
  const message = topic.values[type];
  const plan = message?.v[version];
  if (!plan) {
    throw new DecodeFault(`record type ${type} v${version}`);
  }
  readStruct(cursor, plan, cursor.open(field, `${message.n} v${version}`, plan.x, "part"));
}

/** Add an entry of a message set: magic 0 or 1. @param {Cursor} cursor @param {Field} entry */
function readEntry(cursor, entry) {
  const offset = cursor.fixed("int64");
  cursor.leaf(entry, "offset", "int64", offset);
  cursor.leaf(entry, "messageSize", "int32", cursor.fixed("int32"));
  cursor.leaf(entry, "crc", "uint32", cursor.fixed("uint32"));
  const magic = Number(cursor.fixed("int8"));
  cursor.leaf(entry, "magic", "int8", magic);
  const attributes = Number(cursor.fixed("int8"));
  cursor.leaf(entry, "attributes", "int8", attributes);
  if (magic === 1) {
    cursor.leaf(entry, "timestamp", "int64", cursor.fixed("int64"));
  }
  entry.type = `message of magic ${magic}, offset ${offset}`;
  for (const name of ["key", "value"]) {
    const size = Number(cursor.fixed("int32"));
    const codec = name === "value" ? attributes & 7 : 0;
    if (size < 0) {
      cursor.leaf(entry, name, "bytes", null);
    } else if (codec) {
      cursor.leaf(entry, "length", "int32", size);
      readCompressed(cursor, entry, CODECS[codec] ?? `codec ${codec}`, (inner, field) =>
        readBatches(inner, field, inner.end),
      );
    } else {
      cursor.leaf(entry, name, "bytes", cursor.take(size, name));
    }
  }
}

installRecords(readBatches);
