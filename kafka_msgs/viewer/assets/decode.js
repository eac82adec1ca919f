// @ts-check
// Decoding of messages to trees of fields with their bytes. It interprets the plans of kafka_msgs.codec, like the
// reference interpreter. The leaves of a tree cover every byte of a buffer exactly once, also of malformed messages.

/**
 * A value on the wire: its type, whether its length is compact, whether it may be null, the elements of an array, the
 * fields of a struct, and the message embedded in bytes.
 * @typedef {{o: string, c?: number, z?: number, e?: Value, s?: Struct, k?: string}} Value
 */
/**
 * A field: its name in JSON, its attribute in Python, its value, and its tag.
 * @typedef {[string, string, Value, number?]} Step
 */
/**
 * The fields of a struct: its class and module in Python, whether it ends with a tag section, and both kinds of fields.
 * @typedef {{x: string, m: string, f: number, s: Step[], t: Step[]}} Struct
 */
/**
 * A message in records or in bytes: its name, and its plans by version.
 * @typedef {{n: string, v: Record<string, Struct>}} Versioned
 */
/**
 * The records of an internal topic: messages by type, in keys and values or in frames.
 * @typedef {{framed: boolean, keys: Record<string, Versioned>, values: Record<string, Versioned>}} InternalTopic
 */
/**
 * Everything that decoding needs besides plans of messages.
 * @typedef {object} Facts
 * @property {Record<string, Versioned>} embedded messages in bytes fields, by class
 * @property {Record<string, InternalTopic>} internal records of internal topics, by topic
 * @property {Record<string, string>} topicIds topic names by the hexadecimal digits of their ids
 * @property {Record<string, string>} errors names of error codes
 * @property {Record<string, string>} [decoded] trees of registry payloads in JSON, by the hexadecimal digits of the payloads
 * @property {string} [undecoded] why other registry payloads have no tree
 */
/**
 * A field and its bytes. `role` is "struct", "array" or "value" for values of a message, and "part" for lengths, counts,
 * tags and other bytes that are no value. `opened` is the decompressed content, in a separate buffer.
 * @typedef {object} Field
 * @property {string} name
 * @property {string} type
 * @property {"struct" | "array" | "value" | "part"} role
 * @property {any} value
 * @property {number} start
 * @property {number} end
 * @property {Field[]} kids
 * @property {Field | null} parent
 * @property {string} [attribute]
 * @property {Struct} [plan]
 * @property {string} [error]
 * @property {Layout} [opened]
 */
/**
 * A buffer and the tree of its fields. `where` is the field that contains the buffer, compressed.
 * @typedef {{bytes: Uint8Array, root: Field, leaves: Field[], where: Field | null}} Layout
 */

export class DecodeFault extends Error {}

const FIXED = { bool: 1, int8: 1, int16: 2, int32: 4, int64: 8, uint16: 2, uint32: 4, float64: 8, uuid: 16 };
const MAX_WEIGHTLESS = 100000;
const utf8 = new TextDecoder("utf-8");

/** A position in a buffer, and the tree under construction. */
export class Cursor {
  /** @param {Uint8Array} bytes @param {Facts} facts @param {Uint8Array[]} [contents] */
  constructor(bytes, facts, contents = []) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.facts = facts;
    this.contents = contents;
    this.at = 0;
    this.end = bytes.length;
    this.done = 0;
    this.topic = "";
  }

  get left() {
    return this.end - this.at;
  }

  /** @param {number} size @param {string} what */
  take(size, what) {
    if (size < 0 || size > this.left) {
      throw new DecodeFault(`${what} needs ${size} bytes, ${this.left} left`);
    }
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }

  /** @param {string} type */
  fixed(type) {
    const size = FIXED[/** @type {keyof typeof FIXED} */ (type)];
    this.take(size, type);
    const at = this.at - size;
    switch (type) {
      case "bool":
        return this.view.getUint8(at) !== 0;
      case "int8":
        return this.view.getInt8(at);
      case "int16":
        return this.view.getInt16(at);
      case "int32":
        return this.view.getInt32(at);
      case "int64":
        return small(this.view.getBigInt64(at));
      case "uint16":
        return this.view.getUint16(at);
      case "uint32":
        return this.view.getUint32(at);
      case "float64":
        return this.view.getFloat64(at);
      default:
        return new Uuid(this.bytes.subarray(at, at + size));
    }
  }

  uvarint() {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.take(1, "varint")[0];
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        return value;
      }
    }
    throw new DecodeFault("varint of more than five bytes");
  }

  /** A zigzag number of up to 64 bits. */
  varlong() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.take(1, "varint")[0];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return small(BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n)));
      }
    }
    throw new DecodeFault("varint of more than ten bytes");
  }

  /**
   * Add a container, whose fields follow.
   * @param {Field | null} parent @param {string} name @param {string} type @param {"struct" | "array" | "part"} role
   * @returns {Field}
   */
  open(parent, name, type, role) {
    const field = { name, type, role, value: null, start: this.at, end: -1, kids: [], parent };
    parent?.kids.push(field);
    return field;
  }

  /** @param {Field} field */
  close(field) {
    field.end = this.at;
    return field;
  }

  /**
   * Add a leaf with the bytes since the leaf before.
   * @param {Field} parent @param {string} name @param {string} type @param {any} value @param {"value" | "part"} [role]
   * @returns {Field}
   */
  leaf(parent, name, type, value, role = "part") {
    const field = { name, type, role, value, start: this.done, end: this.at, kids: [], parent };
    parent.kids.push(field);
    this.done = this.at;
    return field;
  }

  /** Complete a tree after a fault: its remaining bytes are one leaf. @param {Field} root @param {unknown} fault */
  fail(root, fault) {
    if (!(fault instanceof DecodeFault) && !(fault instanceof RangeError)) {
      throw fault;
    }
    let last = root;
    while (last.end < 0 && last.kids.length && last.kids[last.kids.length - 1].end < 0) {
      last = last.kids[last.kids.length - 1];
    }
    this.at = this.bytes.length;
    const rest = this.leaf(root, "(not decoded)", "bytes", this.bytes.subarray(this.done, this.at));
    rest.start = rest.end - rest.value.length;
    rest.error = fault.message;
    for (let open = /** @type {Field | null} */ (last); open; open = open.parent) {
      if (open.end < 0) {
        open.end = open === root ? this.at : rest.start;
      }
    }
  }
}

/** A UUID, whose form in JSON is base64. */
export class Uuid {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
  }

  get hex() {
    return hex(this.bytes, "");
  }

  toString() {
    const digits = this.hex;
    return [0, 8, 12, 16, 20].map((at, n) => digits.slice(at, [8, 12, 16, 20, 32][n])).join("-");
  }
}

/** @param {bigint} value @returns {number | bigint} */
export function small(value) {
  return value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value;
}

/** @param {Uint8Array} bytes @param {string} [between] */
export function hex(bytes, between = " ") {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(between);
}

/** @param {Value} value @returns {string} */
function typeOf(value) {
  const words = [...(value.c ? ["compact"] : []), ...(value.z ? ["nullable"] : [])];
  words.push(value.o === "struct" ? structOf(value).x : value.o === "array" ? `array of ${typeOf(elementOf(value))}` : value.o);
  return words.join(" ");
}

/** @param {Value} value @returns {Struct} */
function structOf(value) {
  return /** @type {Struct} */ (value.s);
}

/** @param {Value} value @returns {Value} */
function elementOf(value) {
  return /** @type {Value} */ (value.e);
}

/** @param {Value} value @returns {number} */
function minSize(value) {
  if (value.o === "struct") {
    return value.z ? 1 : structOf(value).s.reduce((sum, step) => sum + minSize(step[2]), structOf(value).f);
  }
  const fixed = FIXED[/** @type {keyof typeof FIXED} */ (value.o)];
  return fixed ?? (value.c ? 1 : value.o === "string" ? 2 : 4);
}

/**
 * Read the length of a string, bytes or array; -1 is null.
 * @param {Cursor} cursor @param {Value} value
 */
function length(cursor, value) {
  const size = value.c ? cursor.uvarint() - 1 : Number(cursor.fixed(value.o === "string" ? "int16" : "int32"));
  if (size < -1 || (size === -1 && !value.z)) {
    throw new DecodeFault(size < -1 ? `negative length ${size}` : "null, which this version does not allow");
  }
  return size;
}

/**
 * Add the fields of a struct.
 * @param {Cursor} cursor @param {Struct} plan @param {Field} field
 */
export function readStruct(cursor, plan, field) {
  field.plan = plan;
  for (const step of plan.s) {
    readValue(cursor, step[2], field, step[0], step[1]);
  }
  if (plan.f) {
    readTags(cursor, plan, field);
  }
  return cursor.close(field);
}

/** @param {Cursor} cursor @param {Struct} plan @param {Field} field */
function readTags(cursor, plan, field) {
  const count = cursor.uvarint();
  cursor.leaf(field, "tagged fields", "count", count);
  let previous = -1;
  for (let number = 0; number < count; number++) {
    const tag = cursor.uvarint();
    if (tag <= previous) {
      throw new DecodeFault(`tag ${tag} after tag ${previous}: tags must ascend`);
    }
    previous = tag;
    const size = cursor.uvarint();
    cursor.leaf(field, `tag ${tag}`, "tag and size", `${size} bytes`);
    if (size > cursor.left) {
      throw new DecodeFault(`tag ${tag} needs ${size} bytes, ${cursor.left} left`);
    }
    const known = plan.t.find((step) => step[3] === tag);
    if (known) {
      const end = cursor.at + size;
      readValue(cursor, known[2], field, known[0], known[1]);
      if (cursor.at !== end) {
        throw new DecodeFault(`tag ${tag} declares ${size} bytes, its value took ${size + cursor.at - end}`);
      }
    } else {
      cursor.leaf(field, `unknown tag ${tag}`, "bytes", cursor.take(size, `tag ${tag}`));
    }
  }
}

/**
 * @param {Cursor} cursor @param {Value} value @param {Field} parent @param {string} name @param {string} attribute
 */
function readValue(cursor, value, parent, name, attribute) {
  const type = typeOf(value);
  /** @type {Field} */
  let field;
  if (value.o === "array") {
    field = readArray(cursor, value, parent, name, type);
  } else if (value.o === "struct") {
    field = readNullable(cursor, value, parent, name, type);
  } else if (value.o in FIXED) {
    const found = cursor.fixed(value.o);
    field = cursor.leaf(parent, name, type, found, "value");
    if (found instanceof Uuid && name === "topicId") {
      cursor.topic = cursor.facts.topicIds[found.hex] ?? "";
    }
  } else {
    field = readSized(cursor, value, parent, name, type);
  }
  field.attribute = attribute;
}

/** @param {Cursor} cursor @param {Value} value @param {Field} parent @param {string} name @param {string} type */
function readArray(cursor, value, parent, name, type) {
  const field = cursor.open(parent, name, type, "array");
  const count = length(cursor, value);
  const element = elementOf(value);
  cursor.leaf(field, "count", value.c ? "compact count" : "count", count < 0 ? null : count);
  const least = minSize(element);
  if (count * least > cursor.left || (!least && count > MAX_WEIGHTLESS)) {
    throw new DecodeFault(`array of ${count} elements, ${cursor.left} bytes left`);
  }
  field.value = count < 0 ? null : count;
  for (let number = 0; number < count; number++) {
    readValue(cursor, element, field, `${number}`, "");
  }
  return cursor.close(field);
}

/** @param {Cursor} cursor @param {Value} value @param {Field} parent @param {string} name @param {string} type */
function readNullable(cursor, value, parent, name, type) {
  const field = cursor.open(parent, name, type, "struct");
  if (value.z) {
    const present = value.c ? cursor.uvarint() > 0 : Number(cursor.fixed("int8")) >= 0;
    cursor.leaf(field, "marker", value.c ? "varint" : "int8", present ? "present" : null);
    if (!present) {
      field.role = "value";
      return cursor.close(field);
    }
  }
  return readStruct(cursor, structOf(value), field);
}

/** @param {Cursor} cursor @param {Value} value @param {Field} parent @param {string} name @param {string} type */
function readSized(cursor, value, parent, name, type) {
  const size = length(cursor, value);
  if (size < 0) {
    return cursor.leaf(parent, name, type, null, "value");
  }
  if (value.o === "string") {
    const text = utf8.decode(cursor.take(size, "string"));
    if (name === "name" || name === "topic" || name === "topicName") {
      cursor.topic = text;
    }
    return cursor.leaf(parent, name, type, text, "value");
  }
  const bytes = cursor.take(size, value.o);
  const opens = value.o === "records" ? readRecords : value.k ? readEmbedded(value.k) : null;
  if (!opens || !size) {
    return cursor.leaf(parent, name, type, bytes, "value");
  }
  cursor.at -= size;
  return readContent(cursor, parent, name, type, bytes, opens);
}

/**
 * Read bytes that contain something: a part for their length, and the tree of the content.
 * @param {Cursor} cursor @param {Field} parent @param {string} name @param {string} type @param {Uint8Array} bytes
 * @param {(cursor: Cursor, field: Field, end: number) => void} opens
 */
export function readContent(cursor, parent, name, type, bytes, opens) {
  const field = cursor.open(parent, name, type, "part");
  field.role = "value";
  field.value = bytes;
  field.start = cursor.done;
  if (cursor.at > cursor.done) {
    cursor.leaf(field, "length", "length", bytes.length);
  }
  const [from, outer, topic] = [cursor.at, cursor.end, cursor.topic];
  cursor.end = from + bytes.length;
  const before = field.kids.length;
  try {
    opens(cursor, field, cursor.end);
    if (cursor.at !== cursor.end) {
      cursor.at = cursor.end;
      cursor.leaf(field, "(trailing bytes)", "bytes", cursor.bytes.subarray(cursor.done, cursor.at));
    }
  } catch (fault) {
    if (!(fault instanceof DecodeFault) && !(fault instanceof RangeError)) {
      throw fault;
    }
    field.kids.length = before;
    cursor.done = from;
    cursor.at = cursor.end;
    cursor.leaf(field, "content", "bytes", bytes).error = opens === readRecords ? fault.message : undefined;
  }
  cursor.end = outer;
  cursor.topic = topic;
  return cursor.close(field);
}

/** @param {string} name */
function readEmbedded(name) {
  return (/** @type {Cursor} */ cursor, /** @type {Field} */ field) => {
    readVersioned(cursor, cursor.facts.embedded[name], field);
  };
}

/**
 * Read an int16 version and the message of that version.
 * @param {Cursor} cursor @param {Versioned} message @param {Field} parent
 */
export function readVersioned(cursor, message, parent) {
  const version = Number(cursor.fixed("int16"));
  const latest = Math.max(...Object.keys(message.v).map(Number));
  const plan = message.v[Math.min(version, latest)];
  if (version < 0 || !plan) {
    throw new DecodeFault(`version ${version} of ${message.n}`);
  }
  cursor.leaf(parent, "version", "int16", version);
  readStruct(cursor, plan, cursor.open(parent, `${message.n} v${version}`, plan.x, "part"));
}

/** The reader of records, which records.js installs; it needs the readers of this module. */
/** @type {(cursor: Cursor, field: Field, end: number) => void} */
let readRecords = () => undefined;

/** @param {(cursor: Cursor, field: Field, end: number) => void} reader */
export function installRecords(reader) {
  readRecords = reader;
}

/**
 * Return the tree of a buffer: parts in a row, each with a name and a reader.
 * @param {Uint8Array} bytes @param {Facts} facts @param {[string, string, (cursor: Cursor, field: Field) => void][]} parts
 * @param {Uint8Array[]} contents @returns {Layout}
 */
export function layoutOf(bytes, facts, parts, contents = []) {
  const cursor = new Cursor(bytes, facts, contents);
  const root = cursor.open(null, "", "", "part");
  try {
    for (const [name, type, read] of parts) {
      const part = cursor.open(root, name, type, "struct");
      read(cursor, part);
      cursor.close(part);
    }
    if (cursor.left) {
      cursor.leaf(root, "(trailing bytes)", "bytes", cursor.take(cursor.left, "rest"));
    }
    cursor.close(root);
  } catch (fault) {
    cursor.fail(root, fault);
  }
  return { bytes, root, leaves: leavesOf(root), where: null };
}

/** @param {Field} root @returns {Field[]} */
export function leavesOf(root) {
  /** @type {Field[]} */
  const leaves = [];
  const pending = [root];
  while (pending.length) {
    const field = /** @type {Field} */ (pending.pop());
    if (field.kids.length) {
      for (let number = field.kids.length - 1; number >= 0; number--) {
        pending.push(field.kids[number]);
      }
    } else if (field.end > field.start) {
      leaves.push(field);
    }
  }
  return leaves;
}

/** Return the leaf that contains a byte. @param {Layout} layout @param {number} at @returns {Field | undefined} */
export function leafAt(layout, at) {
  let [low, high] = [0, layout.leaves.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (layout.leaves[middle].start <= at) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const leaf = layout.leaves[low];
  return leaf && leaf.start <= at && at < leaf.end ? leaf : undefined;
}
