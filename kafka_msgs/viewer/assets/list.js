// @ts-check
// The list of exchanges: filters over the columns of the store, and rows for the visible part alone.

/** @typedef {import("./store.js").Store} Store */

export const ROW_HEIGHT = 30;
const OVERSCAN = 8;
const SLOW_US = 100000;

/**
 * The criteria of the filters. `range` is a time range in microseconds since the epoch.
 * @typedef {{text: string, api: string, client: string, topic: string, group: string, errors: boolean, slow: number | null,
 *   range: [number, number] | null}} Criteria
 */

/** @param {string[]} texts @param {string} part @returns {Uint8Array} 1 for each text that contains a part */
function containing(texts, part) {
  return Uint8Array.from(texts, (text) => (text.toLowerCase().includes(part) ? 1 : 0));
}

/** Return the numbers of the rows that match. @param {Store} store @param {Criteria} criteria @returns {Int32Array} */
export function matchingRows(store, criteria) {
  const { t, i, k, l, e, b, s, o, g } = store.columns;
  const found = new Int32Array(store.size);
  const { strings, topicSets } = store;
  const api = criteria.api === "" ? null : Number(criteria.api);
  const client = criteria.client === "" ? null : strings.indexOf(criteria.client);
  const group = criteria.group === "" ? null : strings.indexOf(criteria.group);
  const inSet = criteria.topic === "" ? null : topicSets.map((topics) => topics.includes(criteria.topic));
  const text = criteria.text.trim().toLowerCase();
  const inText = text ? containing(strings, text) : null;
  const inTopics = text ? topicSets.map((topics) => topics.some((topic) => topic.toLowerCase().includes(text))) : null;
  const apis = text ? new Set(Object.entries(store.apis).filter(([, name]) => name.toLowerCase().includes(text)).map(([key]) => Number(key))) : null;
  const codes = text ? new Set(Object.entries(store.data.errors).filter(([, name]) => name.toLowerCase().includes(text)).map(([code]) => Number(code))) : null;
  const slow = criteria.slow === null ? null : criteria.slow * 1000;
  let count = 0;
  for (let row = 0; row < t.length; row++) {
    if (
      (api === null || k[row] === api) &&
      (client === null || i[row] === client) &&
      (group === null || g[row] === group) &&
      (inSet === null || inSet[o[row]]) &&
      (!criteria.errors || e[row] !== null || b[row] !== 0) &&
      (slow === null || (l[row] !== null && l[row] > slow)) &&
      (criteria.range === null || (t[row] <= criteria.range[1] && t[row] + (l[row] ?? 0) >= criteria.range[0])) &&
      (inText === null || inText[i[row]] || inText[s[row]] || inText[g[row]] || inText[b[row]] || inTopics?.[o[row]] ||
        apis?.has(k[row]) || (e[row] !== null && codes?.has(e[row])))
    ) {
      found[count++] = row;
    }
  }
  return found.subarray(0, count);
}

/** @param {number} us */
export function durationText(us) {
  const ms = us / 1000;
  return ms < 10 ? `${ms.toFixed(2)} ms` : ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

/** @param {number} bytes */
export function sizeText(bytes) {
  return bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** @param {number} us */
export function clockText(us) {
  return us ? new Date(us / 1000).toISOString().slice(11, 23) : "";
}

/** The kind of an API, which has a colour. @param {string} name */
export function apiKind(name) {
  if (/Produce|InitProducer|Txn/.test(name)) {
    return "write";
  }
  if (/Fetch|ListOffsets/.test(name) && !/Offset(Fetch|Commit)/.test(name)) {
    return "read";
  }
  return /Group|Heartbeat|Offset|Coordinator/.test(name) ? "group" : /Sasl|Token|Acl|Scram/.test(name) ? "login" : "other";
}

/** @param {string} tag @param {string} name @param {string} [text] */
export function element(tag, name, text = "") {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text;
  return made;
}

/** The list: only the visible rows are elements, and elements are used again. */
export class ListView {
  /** @param {Store} store @param {(row: number, open: boolean) => void} selected */
  constructor(store, selected) {
    this.store = store;
    this.selected = selected;
    this.current = -1;
    /** @type {Int32Array} */
    this.rows = new Int32Array(0);
    this.box = /** @type {HTMLElement} */ (document.getElementById("rows"));
    this.spacer = /** @type {HTMLElement} */ (document.getElementById("spacer"));
    /** @type {HTMLElement[]} */
    this.pool = [];
    this.longest = 1;
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.box.addEventListener("keydown", (event) => this.pressed(event));
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  /** @param {Int32Array} rows @param {boolean} [stick] whether to stay at the end */
  show(rows, stick = false) {
    const atEnd = this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - ROW_HEIGHT;
    this.rows = rows;
    this.spacer.style.height = `${rows.length * ROW_HEIGHT}px`;
    /** @type {HTMLElement} */ (document.getElementById("empty")).hidden = rows.length > 0;
    if (stick && atEnd) {
      this.box.scrollTop = this.box.scrollHeight;
    }
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW_HEIGHT) - OVERSCAN);
    const count = Math.min(this.rows.length - first, Math.ceil(this.box.clientHeight / ROW_HEIGHT) + 2 * OVERSCAN);
    while (this.pool.length < count) {
      this.pool.push(this.spacer.appendChild(this.newRow()));
    }
    this.pool.forEach((made, number) => {
      made.hidden = number >= count;
      if (number < count) {
        this.fill(made, first + number);
      }
    });
  }

  newRow() {
    const made = element("div", "row");
    made.setAttribute("role", "option");
    for (const name of ["time", "client", "api", "size right", "latency right", "summary"]) {
      made.append(element("span", name));
    }
    const [, client, api, , latency, summary] = /** @type {HTMLElement[]} */ ([...made.children]);
    client.append(element("b", "lane"), element("span", "who"));
    api.append(element("span", "name"), element("span", "version"));
    latency.append(element("i", "bar"), element("span", "ms"));
    summary.append(element("span", "error"), element("span", "what"));
    made.addEventListener("click", () => this.select(Number(made.dataset.at), true));
    return made;
  }

  /** @param {HTMLElement} made @param {number} at */
  fill(made, at) {
    const row = this.rows[at];
    const { columns } = this.store;
    made.style.transform = `translateY(${at * ROW_HEIGHT}px)`;
    made.dataset.at = String(at);
    made.id = `row-${row}`;
    const isBad = this.store.isBad(row);
    made.classList.toggle("bad", isBad);
    made.classList.toggle("fault", this.store.isFault(row));
    made.setAttribute("aria-selected", String(row === this.current));
    made.setAttribute("aria-posinset", String(at + 1));
    made.setAttribute("aria-setsize", String(this.rows.length));
    const [time, client, api, size, latency, summary] = /** @type {HTMLElement[]} */ ([...made.children]);
    const name = this.store.apiName(row);
    time.textContent = clockText(columns.t[row]);
    client.children[0].textContent = columns.c[row] ? String(columns.c[row]) : "";
    client.children[1].textContent = this.store.text(row, "i");
    api.dataset.kind = this.store.isFault(row) ? "fault" : apiKind(name);
    api.children[0].textContent = name;
    api.children[1].textContent = columns.v[row] < 0 ? "" : `v${columns.v[row]}`;
    size.textContent = columns.p[row] === null ? sizeText(columns.q[row]) : `${sizeText(columns.q[row])} › ${sizeText(columns.p[row])}`;
    this.fillLatency(latency, columns.l[row], this.store.isFault(row));
    const problem = this.store.isFault(row) ? "" : this.store.errorName(row) || (columns.b[row] ? "not decoded" : "");
    summary.children[0].textContent = problem;
    summary.children[1].textContent = this.store.text(row, "s");
    summary.title = this.store.text(row, "s");
  }

  /** @param {HTMLElement} cell @param {number | null} us @param {boolean} isFault */
  fillLatency(cell, us, isFault) {
    const bar = /** @type {HTMLElement} */ (cell.children[0]);
    cell.children[1].textContent = us === null ? (isFault ? "" : "no response") : durationText(us);
    const share = us === null ? 0 : Math.min(1, Math.log10(Math.max(1, us)) / 7);
    bar.style.width = `${(share * 100).toFixed(0)}%`;
    cell.classList.toggle("long", us !== null && us >= SLOW_US);
  }

  /** @param {number} at @param {boolean} open whether to show the detail on a narrow screen */
  select(at, open) {
    if (at < 0 || at >= this.rows.length) {
      return;
    }
    this.current = this.rows[at];
    this.box.setAttribute("aria-activedescendant", `row-${this.current}`);
    const top = at * ROW_HEIGHT;
    if (top < this.box.scrollTop) {
      this.box.scrollTop = top;
    } else if (top + ROW_HEIGHT > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + ROW_HEIGHT - this.box.clientHeight;
    }
    this.draw();
    this.selected(this.current, open);
  }

  /** @param {number} row */
  indexOf(row) {
    let [low, high] = [0, this.rows.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle] < row) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return this.rows[low] === row ? low : -1;
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW_HEIGHT) - 1);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const at = this.indexOf(this.current);
    if (event.key === "Enter" && at >= 0) {
      this.select(at, true);
    } else if (event.key in steps && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      this.select(Math.max(0, Math.min(this.rows.length - 1, at + steps[event.key])), false);
    }
  }
}
