// @ts-check
// One exchange: the tree of its fields and its bytes, side by side. Pointing at one lights up the other.

import { Uuid, leafAt } from "./decode.js";
import { bytesText, valueText } from "./forms.js";
import { element } from "./list.js";

/** @typedef {import("./decode.js").Field} Field */
/** @typedef {import("./decode.js").Layout} Layout */
/**
 * One side of an exchange: its label, its bytes with their tree, and its message if it was decoded completely.
 * @typedef {{label: string, layout: Layout, message: Field | null, api: string, version: number, kind: string}} Side
 */

const LINE_HEIGHT = 22;
const LINES_AROUND = 6;
const COLOURS = 8;
const OPEN_LINES = 60;

/** The visible lines of a scrolled box, whose elements are used again. */
class Lines {
  /**
   * @param {HTMLElement} box @param {HTMLElement} spacer @param {() => HTMLElement} make
   * @param {(made: HTMLElement, line: number) => void} fill
   */
  constructor(box, spacer, make, fill) {
    this.box = box;
    this.spacer = spacer;
    this.make = make;
    this.fill = fill;
    this.count = 0;
    /** @type {HTMLElement[]} */
    this.pool = [];
    box.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(box);
  }

  /** @param {number} count */
  resize(count) {
    this.count = count;
    this.spacer.style.height = `${count * LINE_HEIGHT}px`;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / LINE_HEIGHT) - LINES_AROUND);
    const shown = Math.max(0, Math.min(this.count - first, Math.ceil(this.box.clientHeight / LINE_HEIGHT) + 2 * LINES_AROUND));
    while (this.pool.length < shown) {
      this.pool.push(this.spacer.appendChild(this.make()));
    }
    this.pool.forEach((made, number) => {
      made.hidden = number >= shown;
      if (number < shown) {
        made.style.transform = `translateY(${(first + number) * LINE_HEIGHT}px)`;
        this.fill(made, first + number);
      }
    });
  }

  /** @param {number} line */
  reveal(line) {
    const top = line * LINE_HEIGHT;
    if (top < this.box.scrollTop || top + LINE_HEIGHT > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = Math.max(0, top - this.box.clientHeight / 3);
    }
  }
}

/** @param {Field} field */
function kidsOf(field) {
  return field.opened ? field.opened.root.kids : field.kids;
}

/** The panes of one side. */
export class DetailView {
  /** @param {import("./decode.js").Facts} facts names of error codes and topic ids */
  constructor(facts) {
    this.errors = facts.errors;
    this.topicIds = facts.topicIds;
    /** @type {Side | null} */
    this.side = null;
    /** @type {Layout | null} */
    this.layout = null;
    /** @type {Field | null} */
    this.pointed = null;
    /** @type {Field | null} */
    this.pinned = null;
    /** @type {{field: Field, layout: Layout, depth: number}[]} */
    this.shown = [];
    /** @type {Set<Field>} */
    this.expanded = new Set();
    /** @type {Map<Field, number>} */
    this.colours = new Map();
    this.perLine = 16;
    this.treeBox = /** @type {HTMLElement} */ (document.getElementById("tree"));
    this.hexBox = /** @type {HTMLElement} */ (document.getElementById("hex"));
    this.output = /** @type {HTMLElement} */ (document.getElementById("pointed"));
    const treeSpacer = this.treeBox.appendChild(element("div", "spacer"));
    const hexSpacer = /** @type {HTMLElement} */ (document.getElementById("hex-spacer"));
    this.tree = new Lines(this.treeBox, treeSpacer, newTreeLine, (made, line) => this.fillTree(made, line));
    this.hex = new Lines(this.hexBox, hexSpacer, () => element("div", "line"), (made, line) => this.fillHex(made, line));
    this.listen();
    new ResizeObserver(() => this.measure()).observe(this.hexBox);
  }

  listen() {
    this.treeBox.addEventListener("mouseover", (event) => this.overTree(event));
    this.hexBox.addEventListener("mouseover", (event) => this.overHex(event));
    for (const box of [this.treeBox, this.hexBox]) {
      box.addEventListener("mouseleave", () => this.point(this.pinned, null));
    }
    this.treeBox.addEventListener("click", (event) => this.clickedTree(event));
    this.hexBox.addEventListener("click", () => this.pin(this.pointed));
    this.treeBox.addEventListener("keydown", (event) => this.pressedTree(event));
    this.hexBox.addEventListener("keydown", (event) => this.pressedHex(event));
  }

  /** @param {Side} side */
  show(side) {
    this.side = side;
    this.pinned = this.pointed = null;
    this.expanded = new Set();
    this.colours = new Map();
    this.paint(side.layout);
    this.expand(side.layout.root);
    this.treeBox.scrollTop = this.hexBox.scrollTop = 0;
    this.use(side.layout);
    this.flatten();
    this.describe();
  }

  /** Give each leaf the next colour. @param {Layout} layout */
  paint(layout) {
    layout.leaves.forEach((leaf, number) => {
      this.colours.set(leaf, number % COLOURS);
      if (leaf.opened) {
        this.paint(leaf.opened);
      }
    });
  }

  /** Open the upper levels, as far as they fill a screen. @param {Field} root */
  expand(root) {
    const pending = [root];
    let lines = 0;
    for (let field = pending.shift(); field; field = pending.shift()) {
      const kids = kidsOf(field);
      if (field !== root && lines + kids.length > OPEN_LINES) {
        continue;
      }
      lines += kids.length;
      this.expanded.add(field);
      pending.push(...kids.slice(0, OPEN_LINES).filter((kid) => kidsOf(kid).length));
    }
  }

  flatten() {
    this.shown = [];
    const add = (/** @type {Field} */ field, /** @type {Layout} */ layout, /** @type {number} */ depth) => {
      const inner = field.opened ?? layout;
      for (const kid of kidsOf(field)) {
        this.shown.push({ field: kid, layout: inner, depth });
        if (this.expanded.has(kid)) {
          add(kid, inner, depth + 1);
        }
      }
    };
    if (this.side) {
      add(this.side.layout.root, this.side.layout, 0);
    }
    this.tree.resize(this.shown.length);
  }

  /** Show the bytes of a layout. @param {Layout} layout */
  use(layout) {
    if (this.layout !== layout) {
      this.layout = layout;
      this.hexBox.scrollTop = 0;
    }
    this.hex.resize(Math.ceil(layout.bytes.length / this.perLine));
  }

  measure() {
    const fits = this.hexBox.clientWidth >= 620 ? 16 : 8;
    if (fits !== this.perLine && this.layout) {
      this.perLine = fits;
      this.use(this.layout);
    }
  }

  /** @param {HTMLElement} made @param {number} line */
  fillTree(made, line) {
    const { field, depth } = this.shown[line];
    const [arrow, dot, name, type, value] = /** @type {HTMLElement[]} */ ([...made.children]);
    const hasKids = kidsOf(field).length > 0;
    made.dataset.line = String(line);
    made.id = `field-${line}`;
    made.style.paddingInlineStart = `${8 + depth * 14}px`;
    made.classList.toggle("on", field === this.pointed);
    made.classList.toggle("pinned", field === this.pinned);
    made.classList.toggle("part", field.role === "part" && !hasKids);
    made.classList.toggle("wrong", field.error !== undefined);
    made.setAttribute("aria-level", String(depth + 1));
    if (hasKids) {
      made.setAttribute("aria-expanded", String(this.expanded.has(field)));
    } else {
      made.removeAttribute("aria-expanded");
    }
    arrow.textContent = hasKids ? (this.expanded.has(field) ? "▾" : "▸") : "";
    const colour = this.colours.get(field);
    dot.className = colour === undefined ? "dot none" : `dot c${colour}`;
    name.textContent = field.parent?.role === "array" && /^\d+$/.test(field.name) ? `[${field.name}]` : field.name;
    type.textContent = field.type.replace(/^(compact |nullable )*(array)? of .*$/, "array");
    value.textContent = field.error ?? this.textOf(field);
    made.title = `${field.name}: ${field.type}, bytes ${field.start} to ${field.end}`;
  }

  /** @param {Field} field */
  textOf(field) {
    if (field.role === "array") {
      return field.value === null ? "null" : `${field.value} element${field.value === 1 ? "" : "s"}`;
    }
    if (field.value instanceof Uint8Array && field.kids.length) {
      return `${field.value.length.toLocaleString("en")} bytes`;
    }
    const topic = field.value instanceof Uuid ? this.topicIds[field.value.hex] : undefined;
    return topic ? `${field.value} ${JSON.stringify(topic)}` : valueText(field, this.errors);
  }

  /** @param {HTMLElement} made @param {number} line */
  fillHex(made, line) {
    const layout = this.layout;
    if (!layout) {
      return;
    }
    const start = line * this.perLine;
    const bytes = layout.bytes.subarray(start, start + this.perLine);
    while (made.children.length < 1 + 2 * this.perLine) {
      made.append(element("span", ""));
    }
    const spans = /** @type {HTMLElement[]} */ ([...made.children]);
    spans[0].className = "at";
    spans[0].textContent = start.toString(16).padStart(6, "0");
    for (let number = 0; number < this.perLine; number++) {
      this.fillByte(layout, start + number, bytes[number], spans[1 + number], spans[1 + this.perLine + number]);
    }
    spans[1 + this.perLine].classList.add("text-start");
    spans.slice(1 + 2 * this.perLine).forEach((span) => (span.className = "gone"));
  }

  /** @param {Layout} layout @param {number} at @param {number | undefined} byte @param {HTMLElement} cell @param {HTMLElement} letter */
  fillByte(layout, at, byte, cell, letter) {
    if (byte === undefined) {
      cell.className = letter.className = "byte blank";
      cell.textContent = letter.textContent = "";
      return;
    }
    const leaf = leafAt(layout, at);
    const colour = leaf === undefined ? "" : ` c${this.colours.get(leaf)}`;
    const pointed = this.pointed;
    const isOn = pointed !== null && pointed.start <= at && at < pointed.end && this.pointedLayout === layout;
    cell.className = `byte${colour}${isOn ? " on" : ""}`;
    letter.className = `letter${isOn ? " on" : ""}`;
    cell.textContent = byte.toString(16).padStart(2, "0");
    letter.textContent = byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·";
    cell.dataset.at = letter.dataset.at = String(at);
  }

  /** The layout that contains the pointed field. */
  get pointedLayout() {
    const entry = this.shown.find((each) => each.field === this.pointed);
    return entry?.layout ?? this.layout;
  }

  /** @param {Event} event @returns {{field: Field, layout: Layout, line: number} | null} */
  treeEntry(event) {
    const row = event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest(".field")) : null;
    const line = Number(row?.dataset.line ?? -1);
    return row && this.shown[line] ? { ...this.shown[line], line } : null;
  }

  /** @param {Event} event */
  overTree(event) {
    const entry = this.treeEntry(event);
    if (entry) {
      this.point(entry.field, "hex", entry.layout);
    }
  }

  /** @param {Event} event */
  overHex(event) {
    const at = event.target instanceof HTMLElement ? event.target.dataset.at : undefined;
    const leaf = at === undefined || !this.layout ? undefined : leafAt(this.layout, Number(at));
    if (leaf) {
      this.point(leaf, "tree");
    }
  }

  /** Light up a field, and scroll the other pane to it. @param {Field | null} field @param {"hex" | "tree" | null} other @param {Layout} [layout] */
  point(field, other, layout) {
    this.pointed = field;
    if (field && other === "tree") {
      this.revealInTree(field);
    }
    if (layout) {
      this.use(layout);
    }
    if (field && other === "hex" && field.end > field.start) {
      this.hex.reveal(Math.floor(field.start / this.perLine));
    }
    this.tree.draw();
    this.hex.draw();
    this.describe();
  }

  /** @param {Field} field */
  revealInTree(field) {
    let changed = false;
    for (let above = this.above(field); above; above = this.above(above)) {
      changed = changed || !this.expanded.has(above);
      this.expanded.add(above);
    }
    if (changed) {
      this.flatten();
    }
    this.tree.reveal(this.shown.findIndex((each) => each.field === field));
  }

  /** The field above a field, also from decompressed content to its batch. @param {Field} field @returns {Field | null} */
  above(field) {
    if (field.parent?.parent || !field.parent) {
      return field.parent;
    }
    const opened = this.layout && this.layout.root === field.parent ? this.layout.where : null;
    return opened ?? (this.side && field.parent === this.side.layout.root ? null : field.parent);
  }

  /** @param {Field | null} field */
  pin(field) {
    this.pinned = field;
    this.tree.draw();
    this.hex.draw();
  }

  /** @param {Event} event */
  clickedTree(event) {
    const entry = this.treeEntry(event);
    if (!entry) {
      return;
    }
    if (kidsOf(entry.field).length) {
      this.toggle(entry.field);
    }
    this.pin(entry.field);
  }

  /** @param {Field} field */
  toggle(field) {
    if (!this.expanded.delete(field)) {
      this.expanded.add(field);
    }
    this.flatten();
  }

  /** @param {KeyboardEvent} event */
  pressedTree(event) {
    const line = this.shown.findIndex((each) => each.field === this.pinned);
    const field = this.shown[line]?.field;
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: line + 1, ArrowUp: Math.max(0, line - 1), Home: 0, End: this.shown.length - 1 };
    if (field && (event.key === "ArrowRight" || event.key === "ArrowLeft" || event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      const wants = event.key === "ArrowRight" ? true : event.key === "ArrowLeft" ? false : !this.expanded.has(field);
      if (kidsOf(field).length && wants !== this.expanded.has(field)) {
        this.toggle(field);
      }
    } else if (event.key in steps) {
      event.preventDefault();
      const entry = this.shown[Math.min(this.shown.length - 1, steps[event.key])];
      this.pinned = entry.field;
      this.tree.reveal(this.shown.indexOf(entry));
      this.treeBox.setAttribute("aria-activedescendant", `field-${this.shown.indexOf(entry)}`);
      this.point(entry.field, "hex", entry.layout);
    }
  }

  /** @param {KeyboardEvent} event */
  pressedHex(event) {
    /** @type {Record<string, number>} */
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    const leaves = this.layout?.leaves ?? [];
    if (event.key in steps && leaves.length) {
      event.preventDefault();
      const at = leaves.indexOf(/** @type {Field} */ (this.pointed)) + steps[event.key];
      const leaf = leaves[Math.max(0, Math.min(leaves.length - 1, at))];
      this.pinned = leaf;
      this.point(leaf, "tree");
      this.hex.reveal(Math.floor(leaf.start / this.perLine));
    }
  }

  describe() {
    const field = this.pointed;
    const layout = this.layout;
    if (!field || !layout) {
      const where = layout?.where ? "decompressed content, " : "";
      this.output.textContent = layout ? `${where}${layout.bytes.length.toLocaleString("en")} bytes` : "";
      return;
    }
    const path = [];
    for (let above = /** @type {Field | null} */ (field); above?.parent; above = above.parent) {
      path.unshift(above.parent.role === "array" && /^\d+$/.test(above.name) ? `[${above.name}]` : above.name);
    }
    const size = field.end - field.start;
    const value = field.value instanceof Uint8Array ? bytesText(field.value, 24) : "";
    this.output.textContent = `${path.join(".").replaceAll(".[", "[")}  ·  ${field.type}  ·  ${field.start}–${field.end} (${size} byte${size === 1 ? "" : "s"})  ${value}`;
  }
}

function newTreeLine() {
  const made = element("div", "field");
  made.setAttribute("role", "treeitem");
  made.append(element("span", "arrow"), element("i", "dot"), element("span", "name"), element("span", "type"), element("span", "value"));
  return made;
}
