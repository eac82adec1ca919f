// @ts-check
// The page: connects the filters, the timeline, the list and the detail of an exchange.

import { layoutOf, readStruct } from "./decode.js";
import { readBatches } from "./records.js";
import { callText, jsonValue, pythonForm, writeJson } from "./forms.js";
import { Store } from "./store.js";
import { ListView, clockText, durationText, element, matchingRows, sizeText } from "./list.js";
import { Timeline } from "./timeline.js";
import { DetailView } from "./detail.js";

/** @typedef {import("./detail.js").Side} Side */
/** @typedef {import("./store.js").MessagePlan} MessagePlan */
/** @typedef {import("./store.js").Payloads} Payloads */

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @param {string} id */
const input = (id) => /** @type {HTMLInputElement} */ (document.getElementById(id));

const started = performance.now();
const store = new Store(JSON.parse(byId("data").textContent ?? "{}"));
const detail = new DetailView(store.facts);
const list = new ListView(store, (row, open) => void select(row, open));
const timeline = new Timeline(store, (range) => {
  criteria.range = range;
  filter();
}, pick);
/** @type {import("./list.js").Criteria} */
const criteria = { text: "", api: "", client: "", topic: "", group: "", errors: false, slow: null, range: null };
/** @type {Side[]} */
let sides = [];
let side = 0;
let isPaused = false;

/** Return the tree of a payload: header and message, each in its version. @param {Uint8Array} bytes @param {MessagePlan} plan @param {Uint8Array[]} contents */
function messageLayout(bytes, plan, contents) {
  /** @type {Parameters<typeof layoutOf>[2]} */
  const parts = [];
  if (plan.h >= 0) {
    const header = store.data.headers[`${plan.k}${plan.h}`];
    parts.push([header.x, `v${plan.h}`, (cursor, field) => void readStruct(cursor, header, field)]);
  }
  parts.push([plan.n, `v${plan.v}`, (cursor, field) => void readStruct(cursor, plan.p, field)]);
  return layoutOf(bytes, store.facts, parts, contents);
}

/** @param {string} label @param {Uint8Array} bytes @param {MessagePlan | undefined} plan @param {Uint8Array[]} contents @returns {Side} */
function sideOf(label, bytes, plan, contents) {
  const layout = plan ? messageLayout(bytes, plan, contents) : layoutOf(bytes, store.facts, []);
  const message = plan ? layout.root.kids.find((kid) => kid.name === plan.n) ?? null : null;
  const isWhole = message !== null && !layout.leaves.some((leaf) => leaf.name === "(not decoded)" && leaf.parent === layout.root);
  const api = plan ? plan.n.replace(/(Request|Response)$/, "") : "";
  return { label, layout, message: isWhole ? message : null, api, version: plan?.v ?? 0, kind: plan?.k ?? "" };
}

/** @param {number} row @param {Payloads} payloads @returns {Side[]} */
function sidesOf(row, payloads) {
  const { k, v, w } = store.columns;
  const contents = [...payloads.contents];
  Object.assign(store.facts, payloads.decoded);
  const made = [sideOf("Request", payloads.request, store.plans[`request${k[row]}.${v[row]}`], contents)];
  if (payloads.response) {
    made.push(sideOf("Response", payloads.response, store.plans[`response${k[row]}.${w[row]}`], contents));
  }
  return made;
}

/** @param {number} row @param {boolean} open */
async function select(row, open) {
  timeline.show(list.rows, row);
  const payloads = store.isFault(row) ? null : await store.payloads(row);
  if (list.current !== row) {
    return;
  }
  byId("detail").hidden = false;
  byId("panes").classList.add("split");
  byId("panes").classList.toggle("opened", open);
  sides = payloads ? sidesOf(row, payloads) : [];
  side = Math.min(side, Math.max(0, sides.length - 1));
  describe(row, payloads !== null);
  showSide(side);
  list.draw();
}

/** @param {number} row @param {boolean} hasPayloads */
function describe(row, hasPayloads) {
  const { columns } = store;
  const [client, server] = store.ends[columns.c[row]] ?? ["", ""];
  const latency = columns.l[row];
  /** @type {[string, string][]} */
  const facts = store.isFault(row)
    ? [["fault", store.apiName(row)], ["bytes", String(columns.q[row])]]
    : [
        ["request", `${store.apiName(row)} v${columns.v[row]}`],
        ["client id", store.text(row, "i") || "–"],
        ["latency", latency === null ? "no response" : durationText(latency)],
        ["size", columns.p[row] === null ? sizeText(columns.q[row]) : `${sizeText(columns.q[row])} › ${sizeText(columns.p[row])}`],
        ["error", store.errorName(row) || "none"],
      ];
  facts.push(["time", clockText(columns.t[row])], ["connection", `${columns.c[row]}: ${client} › ${server}`]);
  byId("about").replaceChildren(
    ...facts.map(([name, value]) => {
      const both = element("div", "");
      both.append(element("dt", "", name), element("dd", name === "error" && value !== "none" ? "bad" : "", value));
      return both;
    }),
  );
  const gone = hasPayloads || store.isFault(row) ? "" : "The proxy no longer keeps the bytes of this exchange.";
  const reason = store.isFault(row) ? store.text(row, "s") : store.text(row, "b");
  byId("problem").textContent = [gone, reason].filter(Boolean).join(" ");
  byId("problem").hidden = !gone && !reason;
}

/** @param {number} number */
function showSide(number) {
  side = number;
  byId("sides").replaceChildren(
    ...sides.map((each, at) => {
      const tab = document.createElement("button");
      tab.type = "button";
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-selected", String(at === number));
      tab.textContent = each.label;
      tab.addEventListener("click", () => showSide(at));
      return tab;
    }),
  );
  const shown = sides[number];
  byId("detail").classList.toggle("bare", !shown);
  if (shown) {
    detail.show(shown);
  }
  for (const [id, isPossible] of /** @type {[string, boolean][]} */ ([
    ["copy-json", Boolean(shown?.message)],
    ["copy-call", Boolean(shown?.message) && shown.kind === "request"],
    ["copy-python", Boolean(shown?.message)],
  ])) {
    byId(id).hidden = !isPossible;
  }
}

/** @param {string} text @param {string} what */
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  document.documentElement.dataset.copied = text;
  byId("toast").textContent = `${what} copied`;
  byId("toast").hidden = false;
  setTimeout(() => (byId("toast").hidden = true), 1500);
}

function filter() {
  const rows = matchingRows(store, criteria);
  list.show(rows, store.data.live);
  timeline.show(rows, list.current);
  const all = store.size.toLocaleString("en");
  const faults = store.faults;
  const omitted = store.data.omitted ? `, ${store.data.omitted.toLocaleString("en")} more exceed the limits of this page` : "";
  const kinds = faults ? `${(store.size - faults).toLocaleString("en")} exchanges, ${faults} fault${faults === 1 ? "" : "s"}` : `${all} exchanges`;
  byId("counts").textContent = `${rows.length === store.size ? kinds : `${rows.length.toLocaleString("en")} of ${kinds}`}${omitted}`;
}

/** @param {number} row */
function pick(row) {
  list.select(list.indexOf(row), true);
}

/** Fill a list of choices, the most frequent first. @param {string} id @param {Map<string, [string, number]>} counts */
function choices(id, counts) {
  const select = /** @type {HTMLSelectElement} */ (document.getElementById(id));
  const sorted = [...counts].filter(([value]) => value).sort((a, b) => b[1][1] - a[1][1]).slice(0, 500);
  const chosen = select.value;
  const options = sorted.map(([value, [label, count]]) => new Option(`${label} (${count.toLocaleString("en")})`, value));
  select.replaceChildren(select.options[0], ...options);
  select.value = counts.has(chosen) ? chosen : "";
  select.hidden = options.length === 0;
}

function fillChoices() {
  const { k, i, o, g } = store.columns;
  const numbers = (/** @type {number[]} */ column) => {
    const counts = new Map();
    column.forEach((id) => counts.set(id, (counts.get(id) ?? 0) + 1));
    return counts;
  };
  const texts = (/** @type {number[]} */ column) =>
    new Map([...numbers(column)].map(([id, count]) => [store.strings[id], /** @type {[string, number]} */ ([store.strings[id], count])]));
  const topics = new Map();
  for (const [id, count] of numbers(o)) {
    for (const topic of store.topicSets[id]) {
      topics.set(topic, [topic, (topics.get(topic)?.[1] ?? 0) + count]);
    }
  }
  const apis = [...numbers(k)].filter(([key]) => key >= 0);
  choices("api", new Map(apis.map(([key, count]) => [String(key), [store.apis[key] ?? String(key), count]])));
  choices("client", texts(i));
  choices("topic", topics);
  choices("group", texts(g));
}

function listen() {
  byId("filters").addEventListener("input", () => {
    criteria.text = input("search").value;
    for (const name of /** @type {const} */ (["api", "client", "topic", "group"])) {
      criteria[name] = input(name).value;
    }
    criteria.errors = input("errors").checked;
    criteria.slow = input("slow").value === "" ? null : Number(input("slow").value);
    filter();
  });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => {
    Object.assign(criteria, { text: "", api: "", client: "", topic: "", group: "", errors: false, slow: null });
    timeline.select(null);
  });
  byId("back").addEventListener("click", () => byId("panes").classList.remove("opened"));
  byId("copy-json").addEventListener("click", () => {
    const message = sides[side].message;
    return message && void copy(writeJson(jsonValue(message)), "JSON");
  });
  byId("copy-call").addEventListener("click", () => {
    const { message, api, version } = sides[side];
    return message && void copy(callText(api, version, message), "Command");
  });
  byId("copy-python").addEventListener("click", () => {
    const { message, version } = sides[side];
    return message && void copy(pythonForm(version, message), "Python");
  });
  byId("pause").addEventListener("click", () => {
    isPaused = !isPaused;
    byId("pause").textContent = isPaused ? "Resume" : "Pause";
    byId("pause").setAttribute("aria-pressed", String(isPaused));
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      input("search").focus();
    } else if (event.key === "Escape" && event.target === input("search")) {
      list.box.focus();
    } else if (event.key === "Escape") {
      byId("panes").classList.remove("opened");
    }
  });
}

/** Show one explained message, without a list. @param {NonNullable<import("./store.js").Data["single"]>} single */
async function explain(single) {
  document.body.classList.add("single");
  const { request, contents } = await store.entry(0);
  if (single.kind === "records") {
    const layout = layoutOf(request, store.facts, [
      ["records", `${request.length} bytes`, (cursor, field) => {
        cursor.topic = single.topic ?? "";
        readBatches(cursor, field, cursor.end);
      }],
    ], [...contents]);
    sides = [{ label: "Records", layout, message: null, api: "", version: 0, kind: "records" }];
  } else {
    sides = [sideOf(single.plan?.n ?? "", request, single.plan, [...contents])];
  }
  byId("detail").hidden = false;
  byId("counts").textContent = `${request.length.toLocaleString("en")} bytes`;
  showSide(0);
  document.documentElement.dataset.ready = String(performance.now() - started);
}

function main() {
  byId("title").textContent = store.data.title;
  listen();
  if (store.data.single) {
    void explain(store.data.single);
    return;
  }
  fillChoices();
  filter();
  if (store.data.live) {
    byId("live").hidden = byId("pause").hidden = false;
    let known = 0;
    void store.follow(() => isPaused, (isLost) => {
      byId("live").textContent = isLost ? "not connected" : "live";
      byId("live").classList.toggle("lost", isLost);
      if (store.first + store.size !== known) {
        known = store.first + store.size;
        fillChoices();
        filter();
      }
    });
  }
  document.documentElement.dataset.ready = String(performance.now() - started);
}

main();
