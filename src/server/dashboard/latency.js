// How long requests took, by what answered them, and why the cache did not.

import { byId, el, heading, list, row, say } from "./dom.js";
import { count, millis, words } from "./format.js";

const COLUMNS = [
  ["source", "Source"],
  ["count", "Requests", "number"],
  ["p50", "p50", "number"],
  ["p95", "p95", "number wide"],
  ["p99", "p99", "number"],
  ["range", "p50 to p99", "strip"],
];
/** These are always shown; the others once there are any. */
const ALWAYS = ["exact", "semantic", "miss", "embed", "search"];
const ORDER = ["exact", "semantic", "miss", "coalesced", "bypass", "degraded", "error", "embed", "search"];
const STEPS = { embed: "embedding", search: "search" };

export function latency() {
  heading(byId("latency-table"), COLUMNS);
  const body = byId("latency-rows");

  return {
    update({ stats }) {
      const rows = ORDER.map((source) => ({ source, ...stats.latency[source] }))
        .filter(({ source, count }) => ALWAYS.includes(source) || count > 0);
      // One logarithmic scale for all: a hit and a miss lie a thousandfold apart.
      const found = rows.flatMap(({ p50_ms, p99_ms }) => (p50_ms === null ? [] : [Math.max(p50_ms, 0.01), p99_ms]));
      const low = Math.log10(Math.min(0.1, ...found));
      const high = Math.log10(Math.max(10, ...found));
      const at = (value) => `${(100 * (Math.log10(Math.max(value, 0.01)) - low)) / (high - low)}%`;
      list(body, rows, ({ source }) => source, ({ source }) => {
        const { node, cells } = row(COLUMNS);
        const bar = el("span", { class: `bar ${STEPS[source] ? "step" : source}` });
        cells.source.append(el("i", { class: `swatch ${STEPS[source] ? "step" : source}` }), STEPS[source] ?? source);
        cells.range.append(el("span", { class: "track", "aria-hidden": "true" }, bar));
        return { node, cells, bar };
      }, ({ cells, bar }, now) => {
        say(cells.count, count(now.count));
        for (const p of ["p50", "p95", "p99"]) say(cells[p], millis(now[`${p}_ms`]));
        bar.hidden = now.p50_ms === null;
        if (bar.hidden) return;
        bar.style.setProperty("--from", at(now.p50_ms));
        bar.style.setProperty("--to", at(now.p99_ms));
      });
    },
  };
}

const REASONS = [
  ["refusals", "not the same question", "semantic"],
  ["semantic_bypasses", "not matched in other words", "step"],
  ["bypasses", "past the cache", "bypass"],
  ["write_skips", "not stored", "miss"],
  ["degraded", "in place of an answer", "degraded"],
  ["errors", "error", "error"],
];

export function reasons() {
  return {
    update({ stats }) {
      const found = REASONS.flatMap(([field, kind, color]) =>
        Object.entries(stats.totals[field]).map(([reason, n]) => ({ field, kind, color, reason, n })));
      found.sort((left, right) => right.n - left.n);
      byId("no-reasons").hidden = found.length > 0;
      const most = Math.max(1, ...found.map(({ n }) => n));
      list(byId("reasons-list"), found.slice(0, 10), ({ field, reason }) => `${field} ${reason}`, ({ kind, color, reason }) => {
        const n = el("b");
        const bar = el("span", { class: `share ${color}` });
        const node = el("li", {}, el("span", { class: "reason" }, words(reason), " ", el("small", {}, kind)), n,
          el("span", { class: "track", "aria-hidden": "true" }, bar));
        return { node, n, bar };
      }, ({ n, bar }, now) => {
        say(n, count(now.n));
        bar.style.setProperty("--to", `${(100 * now.n) / most}%`);
      });
    },
  };
}
