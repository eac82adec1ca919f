// @ts-check
// The waterfall: one lane for each connection, one bar for each exchange, drawn on a canvas. Dragging selects a range.

import { apiKind, clockText, durationText } from "./list.js";

/** @typedef {import("./store.js").Store} Store */

const LANE = 14;
const BAR = 8;
const TOP = 18;
const MAX_LANES = 400;
const LABEL = 168;
const NEAR = 4;

/** The bars of the matching exchanges. */
export class Timeline {
  /**
   * @param {Store} store @param {(range: [number, number] | null) => void} ranged @param {(row: number) => void} picked
   */
  constructor(store, ranged, picked) {
    this.store = store;
    this.ranged = ranged;
    this.picked = picked;
    this.canvas = /** @type {HTMLCanvasElement} */ (document.getElementById("waterfall"));
    this.box = /** @type {HTMLElement} */ (document.getElementById("timeline"));
    this.output = /** @type {HTMLElement} */ (document.getElementById("range"));
    /** @type {Int32Array} */
    this.rows = new Int32Array(0);
    /** @type {number[]} */
    this.lanes = [];
    this.current = -1;
    /** @type {[number, number] | null} */
    this.range = null;
    /** @type {number | null} */
    this.from = null;
    this.span = [0, 1];
    this.isScheduled = false;
    new ResizeObserver(() => this.schedule()).observe(this.box);
    this.canvas.addEventListener("pointerdown", (event) => this.pressed(event));
    this.canvas.addEventListener("pointermove", (event) => this.moved(event));
    this.canvas.addEventListener("pointerup", (event) => this.released(event));
    this.canvas.addEventListener("keydown", (event) => event.key === "Escape" && this.select(null));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.schedule());
  }

  /** @param {Int32Array} rows @param {number} current */
  show(rows, current) {
    this.rows = rows;
    this.current = current;
    this.schedule();
  }

  /** Find the connections and the time range of the rows. */
  measure() {
    const rows = this.rows;
    const { t, c, l } = this.store.columns;
    const lanes = new Set();
    let [first, last] = [Infinity, -Infinity];
    for (const row of rows) {
      if (t[row]) {
        lanes.add(c[row]);
        first = Math.min(first, t[row]);
        last = Math.max(last, t[row] + (l[row] ?? 0));
      }
    }
    this.lanes = [...lanes].sort((a, b) => a - b).slice(0, MAX_LANES);
    this.span = this.range ?? (first <= last ? [first, Math.max(last, first + 1000)] : [0, 1]);
  }

  /** Draw before the next frame, once. */
  schedule() {
    if (!this.isScheduled) {
      this.isScheduled = true;
      requestAnimationFrame(() => {
        this.isScheduled = false;
        this.draw();
      });
    }
  }

  /** @param {number} time */
  x(time) {
    return LABEL + ((time - this.span[0]) / (this.span[1] - this.span[0])) * (this.canvas.clientWidth - LABEL - 12);
  }

  /** @param {number} x */
  time(x) {
    const share = (x - LABEL) / (this.canvas.clientWidth - LABEL - 12);
    return this.span[0] + Math.max(0, Math.min(1, share)) * (this.span[1] - this.span[0]);
  }

  draw() {
    this.measure();
    const scale = devicePixelRatio || 1;
    const width = this.box.clientWidth;
    const height = TOP + Math.max(1, this.lanes.length) * LANE + 6;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    const paint = this.canvas.getContext("2d");
    if (!paint) {
      return;
    }
    paint.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    paint.clearRect(0, 0, width, height);
    paint.font = `11px ${style.getPropertyValue("--sans")}`;
    paint.textBaseline = "middle";
    this.drawScale(paint, colour, width, height);
    this.drawLanes(paint, colour, width);
    this.drawBars(paint, colour);
  }

  /** @param {CanvasRenderingContext2D} paint @param {(name: string) => string} colour @param {number} width @param {number} height */
  drawScale(paint, colour, width, height) {
    const steps = Math.max(2, Math.floor((width - LABEL) / 130));
    for (let number = 0; number <= steps; number++) {
      const time = this.span[0] + ((this.span[1] - this.span[0]) * number) / steps;
      const x = this.x(time);
      paint.fillStyle = colour("line");
      paint.fillRect(Math.round(x), TOP - 2, 1, height);
      paint.fillStyle = colour("muted");
      const text = number ? `+${durationText(time - this.span[0])}` : clockText(time);
      paint.textAlign = number === steps ? "right" : "left";
      paint.fillText(this.rows.length ? text : "", x + (number === steps ? 0 : 3), 9);
    }
    paint.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} paint @param {(name: string) => string} colour @param {number} width */
  drawLanes(paint, colour, width) {
    this.lanes.forEach((connection, lane) => {
      const y = TOP + lane * LANE;
      if (lane % 2) {
        paint.fillStyle = colour("stripe");
        paint.fillRect(0, y, width, LANE);
      }
      paint.fillStyle = colour("muted");
      const [client, server] = this.store.ends[connection] ?? ["", ""];
      const label = connection ? `${connection}  ${client.replace(/^.*:/, ":")} › ${server}` : "file";
      paint.fillText(label.length > 28 ? `${label.slice(0, 27)}…` : label, 10, y + LANE / 2);
    });
  }

  /** @param {CanvasRenderingContext2D} paint @param {(name: string) => string} colour */
  drawBars(paint, colour) {
    const places = new Map(this.lanes.map((connection, lane) => [connection, lane]));
    const { t, c, l } = this.store.columns;
    const kinds = new Map(Object.entries(this.store.apis).map(([key, name]) => [Number(key), colour(apiKind(name))]));
    const [bad, other] = [colour("bad"), colour("other")];
    const right = new Float64Array(this.lanes.length);
    for (const row of this.rows) {
      const lane = places.get(c[row]);
      if (lane === undefined || !t[row]) {
        continue;
      }
      const x = this.x(t[row]);
      const end = Math.max(x + 1.5, this.x(t[row] + (l[row] ?? 0)));
      const isBad = this.store.isBad(row);
      if (end <= right[lane] + 0.25 && !isBad && row !== this.current) {
        continue;
      }
      right[lane] = Math.max(right[lane], end);
      paint.fillStyle = isBad ? bad : kinds.get(this.store.columns.k[row]) ?? other;
      paint.fillRect(x, TOP + lane * LANE + (LANE - BAR) / 2, end - x, BAR);
    }
    const lane = this.current >= 0 ? places.get(c[this.current]) : undefined;
    if (lane !== undefined) {
      paint.strokeStyle = colour("ink");
      paint.lineWidth = 1.5;
      const x = this.x(t[this.current]);
      const end = Math.max(x + 3, this.x(t[this.current] + (l[this.current] ?? 0)));
      paint.strokeRect(x - 1.5, TOP + lane * LANE + 1, end - x + 3, LANE - 2);
    }
  }

  /** @param {PointerEvent} event */
  pressed(event) {
    this.from = event.offsetX;
    this.canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  moved(event) {
    if (this.from === null || Math.abs(event.offsetX - this.from) < NEAR) {
      return;
    }
    this.draw();
    const paint = this.canvas.getContext("2d");
    if (paint) {
      paint.fillStyle = "rgba(91, 108, 255, 0.22)";
      paint.fillRect(this.from, TOP, event.offsetX - this.from, this.canvas.clientHeight);
    }
  }

  /** @param {PointerEvent} event */
  released(event) {
    const from = this.from ?? event.offsetX;
    this.from = null;
    if (Math.abs(event.offsetX - from) < NEAR) {
      this.pick(event.offsetX, event.offsetY);
    } else {
      const ends = [this.time(from), this.time(event.offsetX)].sort((a, b) => a - b);
      this.select([ends[0], ends[1]]);
    }
  }

  /** @param {[number, number] | null} range */
  select(range) {
    this.range = range;
    this.output.textContent = range ? `${clockText(range[0])} – ${clockText(range[1])}` : "";
    this.ranged(range);
  }

  /** Select the bar at a position. @param {number} x @param {number} y */
  pick(x, y) {
    const connection = this.lanes[Math.floor((y - TOP) / LANE)];
    const { t, c, l } = this.store.columns;
    let [best, distance] = [-1, 8];
    for (const row of this.rows) {
      if (c[row] === connection && t[row]) {
        const away = Math.max(this.x(t[row]) - x, x - this.x(t[row] + (l[row] ?? 0)), 0);
        if (away < distance) {
          [best, distance] = [row, away];
        }
      }
    }
    if (best >= 0) {
      this.picked(best);
    }
  }
}
