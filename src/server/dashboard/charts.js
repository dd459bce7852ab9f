// Stacked bars over time, drawn by uPlot. A chart can be read with the arrow keys, and by a screen reader as a
// slider whose value is what the bar under the cursor says.

import { el, say } from "./dom.js";
import { hours } from "./format.js";

/* global uPlot */

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/**
 * A chart in `box`, which must have a height. `series` are `{ label, color, value(bar), total(bars) }` from the
 * bottom up; `value` gives a number, or null for no bar. `top(highest)` is the upper end of the scale.
 */
export class Bars {
  #plot = null;
  #box;
  #series;
  #format;
  #top;
  #bars = [];
  #legend = [];
  #when;
  #range = "";

  constructor(box, legend, when, { series, format, top, name }) {
    this.#box = box;
    this.#series = series;
    this.#format = format;
    this.#top = top;
    this.#when = when;
    for (const { label, color } of series) {
      const value = el("b", {});
      legend.append(el("li", {}, el("i", { class: `swatch ${color}` }), `${label} `, value));
      this.#legend.push(value);
    }
    box.tabIndex = 0;
    box.setAttribute("role", "slider");
    box.setAttribute("aria-label", name);
    box.addEventListener("keydown", (event) => this.#key(event));
    box.addEventListener("blur", () => this.#point(null));
    new ResizeObserver(() => this.#fit()).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
    matchMedia("(prefers-contrast: more)").addEventListener("change", () => this.#draw());
  }

  /** Shows these bars; `range` in words, for the legend. */
  update(bars, range) {
    const same = bars.length === this.#bars.length;
    this.#bars = bars;
    this.#range = range;
    if (this.#plot && same) this.#plot.setData(this.#data());
    else this.#draw();
    this.#read(this.#plot?.cursor.idx ?? null);
  }

  /** Each series as the sum of itself and all below it; the highest first, so that lower ones are drawn over it. */
  #data() {
    const sums = this.#bars.map(() => null);
    const stacked = this.#series.map(({ value }) =>
      this.#bars.map((bar, index) => {
        const n = bar.outcomes && value(bar);
        if (n === null || n === undefined) return null;
        sums[index] = (sums[index] ?? 0) + n;
        return sums[index];
      }));
    // Uncategorised places on the x axis: bars stand side by side, whatever the clock does.
    return [this.#bars.map((_, index) => index), ...stacked.reverse()];
  }

  #draw() {
    if (this.#bars.length === 0) return;
    this.#plot?.destroy();
    const { width, height } = this.#size();
    const [line, faint] = [color("line"), color("faint")];
    const axis = { stroke: faint, font: `11px ${getComputedStyle(document.body).fontFamily}`, ticks: { show: false } };
    const bars = uPlot.paths.bars({ size: [0.72, 40] });
    this.#plot = new uPlot(
      {
        width,
        height,
        padding: [8, 18, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: {
          x: { time: false, range: () => [-0.6, this.#bars.length - 0.4] },
          y: { range: (_, __, highest) => [0, this.#top(highest ?? 0)] },
        },
        axes: [
          {
            ...axis,
            size: 26,
            gap: 6,
            grid: { show: false },
            splits: () => this.#ticks(width),
            values: (_, places) => places.map((place) => hours(this.#bars[place].at * 1000)),
          },
          {
            ...axis,
            size: 44,
            gap: 6,
            space: 34,
            grid: { stroke: line, width: 1 },
            values: (_, values) => values.map((value) => this.#format(value, true)),
          },
        ],
        series: [
          {},
          ...[...this.#series].reverse().map((series) => ({
            fill: color(series.color), width: 0, stroke: "transparent", paths: bars, points: { show: false },
          })),
        ],
        hooks: { setCursor: [(plot) => this.#read(plot.cursor.idx)] },
      },
      this.#data(),
      this.#box,
    );
    this.#read(null);
  }

  /** A time every so many bars, the last one among them. */
  #ticks(width) {
    const every = Math.ceil(this.#bars.length / Math.max(2, Math.floor(width / 90)));
    const ticks = [];
    for (let place = this.#bars.length - 1; place >= 0; place -= every) ticks.unshift(place);
    return ticks.filter((place) => place > 0 || every === 1);
  }

  #size() {
    return { width: Math.max(120, Math.floor(this.#box.clientWidth)), height: Math.floor(this.#box.clientHeight) };
  }

  #fit() {
    if (!this.#plot) return;
    const { width, height } = this.#size();
    if (width !== this.#plot.width || height !== this.#plot.height) this.#draw();
  }

  #key(event) {
    const last = this.#bars.length - 1;
    const from = this.#plot?.cursor.idx ?? last + 1;
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") this.#point(null);
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.#point(Math.min(last, Math.max(0, to)));
  }

  #point(index) {
    if (!this.#plot) return;
    const left = index === null ? -10 : this.#plot.valToPos(index, "x");
    this.#plot.setCursor({ left, top: index === null ? -10 : 0 });
  }

  /** The legend: the bar under the cursor, or the whole range. */
  #read(index) {
    const bar = this.#bars[index] ?? null;
    const values = this.#series.map(({ value, total }) => {
      if (!bar) return total(this.#bars);
      return bar.outcomes ? value(bar) : null;
    });
    for (const [place, value] of values.entries()) say(this.#legend[place], this.#format(value, false));
    const when = bar ? `from ${hours(bar.at * 1000)}` : `last ${this.#range}`;
    say(this.#when, when);
    const words = this.#series.map(({ label }, place) => `${label} ${this.#format(values[place], false)}`);
    const place = index ?? this.#bars.length - 1;
    this.#box.setAttribute("aria-valuemin", "0");
    this.#box.setAttribute("aria-valuemax", String(Math.max(0, this.#bars.length - 1)));
    this.#box.setAttribute("aria-valuenow", String(place));
    this.#box.setAttribute("aria-valuetext", `${when}: ${words.join(", ")}`);
  }
}
