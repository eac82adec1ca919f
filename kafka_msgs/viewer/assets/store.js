// @ts-check
// The exchanges of the page: rows as columns of numbers, and payloads on demand, from the page or from the proxy.

/** @typedef {import("./decode.js").Facts} Facts */
/** @typedef {import("./decode.js").Struct} Struct */
/** @typedef {{n: string, v: number, h: number, k: string, p: Struct}} MessagePlan */
/**
 * The data of the page.
 * @typedef {object} Data
 * @property {string} title
 * @property {boolean} live
 * @property {Record<string, MessagePlan>} plans
 * @property {Record<string, Struct>} headers
 * @property {Facts["embedded"]} embedded
 * @property {Facts["internal"]} internal
 * @property {Record<string, string>} topicIds
 * @property {Record<string, string>} errors
 * @property {Record<string, string>} [apis]
 * @property {string[]} [strings]
 * @property {string[][]} [topicSets]
 * @property {Record<string, [string, string]>} [ends]
 * @property {Record<string, any[]>} [columns]
 * @property {number[]} [starts]
 * @property {number} [omitted]
 * @property {number} [maxItems]
 * @property {Facts["decoded"]} [decoded]
 * @property {Facts["undecoded"]} [undecoded]
 * @property {{kind: string, plan?: MessagePlan, topic?: string}} [single]
 */
/** @typedef {{request: Uint8Array, response: Uint8Array | null, contents: Uint8Array[], decoded?: Partial<Facts>}} Payloads */

const COLUMNS = ["t", "c", "i", "k", "v", "w", "q", "p", "l", "e", "b", "s", "o", "g"];
const CACHED_CHUNKS = 8;
const POLL_MS = 400;

/** @param {Uint8Array} bytes @param {number} at @returns {[Payloads, number]} the payloads of an entry, and its end */
export function readEntryBytes(bytes, at) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const next = () => {
    const size = view.getInt32(at);
    at += 4;
    if (size < 0) {
      return null;
    }
    at += size;
    return bytes.subarray(at - size, at);
  };
  const request = /** @type {Uint8Array} */ (next());
  const response = next();
  const count = view.getInt32(at);
  at += 4;
  const contents = Array.from({ length: count }, () => /** @type {Uint8Array} */ (next()));
  return [{ request, response, contents }, at];
}

/** @param {string} text @returns {Promise<Uint8Array>} */
async function inflate(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) {
    bytes[at] = binary.charCodeAt(at);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The rows, and everything that decoding them needs. */
export class Store {
  /** @param {Data} data */
  constructor(data) {
    this.data = data;
    this.apis = data.apis ?? {};
    this.plans = data.plans;
    /** @type {Facts} */
    this.facts = { embedded: data.embedded, internal: data.internal, topicIds: data.topicIds, errors: data.errors };
    if (data.decoded) {
      Object.assign(this.facts, { decoded: data.decoded, undecoded: data.undecoded });
    }
    this.ends = data.ends ?? {};
    this.strings = data.strings ?? [""];
    this.topicSets = data.topicSets ?? [[]];
    /** @type {Record<string, any[]>} */
    this.columns = data.columns ?? Object.fromEntries(COLUMNS.map((name) => [name, []]));
    this.first = 0;
    this.faults = this.columns.k.reduce((sum, key) => sum + (key < 0 ? 1 : 0), 0);
    /** @type {Map<number, Promise<Uint8Array>>} */
    this.chunks = new Map();
    this.index();
  }

  get size() {
    return this.columns.t.length;
  }

  index() {
    this.stringIds = new Map(this.strings.map((text, number) => [text, number]));
    this.setIds = new Map(this.topicSets.map((topics, number) => [topics.join("\0"), number]));
    const times = this.columns.t;
    this.start = times.length ? times.reduce((least, time) => (time && time < least ? time : least), times[0]) : 0;
  }

  /** @param {number} row @param {string} column @returns {string} */
  text(row, column) {
    return this.strings[this.columns[column][row]];
  }

  /** @param {number} row */
  isFault(row) {
    return this.columns.k[row] < 0;
  }

  /** @param {number} row */
  apiName(row) {
    const key = this.columns.k[row];
    return key < 0 ? this.text(row, "b") : this.apis[key] ?? `API ${key}`;
  }

  /** @param {number} row */
  errorName(row) {
    const code = this.columns.e[row];
    return code === null ? "" : this.data.errors[code] ?? String(code);
  }

  /** Whether a row has an error code or a problem. @param {number} row */
  isBad(row) {
    return this.columns.e[row] !== null || this.columns.b[row] !== 0;
  }

  /** @param {number} row @returns {Promise<Payloads | null>} null if the proxy no longer has the payloads */
  async payloads(row) {
    return this.data.live ? this.liveEntry(row) : this.entry(row);
  }

  /** @param {number} row */
  async liveEntry(row) {
    const number = this.first + row;
    const decoded = this.data.decoded ? await this.liveDecoded(number) : {};
    const found = await fetch(`payload/${number}`);
    return found.ok ? { ...readEntryBytes(new Uint8Array(await found.arrayBuffer()), 0)[0], decoded } : null;
  }

  /** The decoded registry payloads of an exchange. @param {number} number @returns {Promise<Partial<Facts>>} */
  async liveDecoded(number) {
    try {
      const found = await fetch(`decoded/${number}`);
      return found.ok ? await found.json() : { decoded: {}, undecoded: "not decoded" };
    } catch {
      return { decoded: {}, undecoded: "not decoded: the registry did not respond in time" };
    }
  }

  /** @param {number} row */
  async entry(row) {
    const starts = this.data.starts ?? [0];
    let chunk = 0;
    for (let step = 2 ** Math.ceil(Math.log2(starts.length + 1)); step >= 1; step /= 2) {
      if (chunk + step < starts.length && starts[chunk + step] <= row) {
        chunk += step;
      }
    }
    const bytes = await this.chunk(chunk);
    let [payloads, at] = readEntryBytes(bytes, 0);
    for (let number = starts[chunk]; number < row; number++) {
      [payloads, at] = readEntryBytes(bytes, at);
    }
    return payloads;
  }

  /** @param {number} number */
  chunk(number) {
    let found = this.chunks.get(number);
    if (!found) {
      found = inflate(document.getElementsByClassName("chunk")[number].textContent ?? "");
      this.chunks.set(number, found);
      if (this.chunks.size > CACHED_CHUNKS) {
        this.chunks.delete(/** @type {number} */ (this.chunks.keys().next().value));
      }
    }
    return found;
  }

  /** @param {string} text */
  intern(text) {
    let found = this.stringIds?.get(text);
    if (found === undefined) {
      found = this.strings.push(text) - 1;
      this.stringIds?.set(text, found);
    }
    return found;
  }

  /** @param {string[]} topics */
  internTopics(topics) {
    const key = topics.join("\0");
    let found = this.setIds?.get(key);
    if (found === undefined) {
      found = this.topicSets.push(topics) - 1;
      this.setIds?.set(key, found);
    }
    return found;
  }

  /** Add rows of the live view. @param {any[][]} rows */
  append(rows) {
    for (const row of rows) {
      const ends = row[COLUMNS.length];
      const values = row.slice(0, COLUMNS.length);
      for (const at of [2, 10, 11, 13]) {
        values[at] = this.intern(values[at]);
      }
      values[12] = this.internTopics(values[12]);
      COLUMNS.forEach((name, at) => this.columns[name].push(values[at]));
      this.faults += values[3] < 0 ? 1 : 0;
      this.ends[values[1]] = ends;
    }
    const most = this.data.maxItems ?? 10000;
    if (this.size > most) {
      this.trim(this.size - most);
    }
    if (!this.start && this.size) {
      this.start = this.columns.t[0];
    }
  }

  /** Drop the oldest rows, and the texts that no row needs. @param {number} count */
  trim(count) {
    this.first += count;
    const strings = this.strings;
    const topicSets = this.topicSets;
    this.faults -= this.columns.k.slice(0, count).reduce((sum, key) => sum + (key < 0 ? 1 : 0), 0);
    for (const name of COLUMNS) {
      this.columns[name] = this.columns[name].slice(count);
    }
    if (strings.length > 4 * this.size) {
      this.strings = [""];
      this.topicSets = [[]];
      this.index();
      for (const name of ["i", "b", "s", "g"]) {
        this.columns[name] = this.columns[name].map((id) => this.intern(strings[id]));
      }
      this.columns.o = this.columns.o.map((id) => this.internTopics(topicSets[id]));
      const used = new Set(this.columns.c);
      this.ends = Object.fromEntries(Object.entries(this.ends).filter(([number]) => used.has(Number(number))));
    }
  }

  /** Poll the proxy for new rows. @param {() => boolean} isPaused @param {(error: boolean) => void} changed */
  async follow(isPaused, changed) {
    for (;;) {
      if (!isPaused() && !document.hidden) {
        try {
          const more = await this.poll();
          changed(false);
          if (more) {
            continue;
          }
        } catch {
          changed(true);
        }
      }
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
  }

  /** @returns {Promise<boolean>} whether more rows may wait */
  async poll() {
    const after = this.first + this.size;
    const found = await (await fetch(`rows/${after}`)).json();
    Object.assign(this.plans, found.plans);
    Object.assign(this.apis, found.apis);
    Object.assign(this.facts.internal, found.internal);
    Object.assign(this.facts.topicIds, found.topicIds);
    if (found.start > after) {
      this.trim(this.size);
      this.first = found.start;
    }
    this.append(found.rows);
    return found.rows.length >= 2000;
  }
}
