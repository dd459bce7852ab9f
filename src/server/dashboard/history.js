// What happened when, made from what the service tells: how much there was since a moment. The difference
// of two such numbers is what happened in between. The service answers for whole minutes of the last hour and
// tens of minutes of the day, and every edge here is one of these.

import { get, query } from "./api.js";

/** Seconds a bar stands for, and how many bars. */
export const RANGES = {
  "15m": { step: 60, bars: 15, words: "15 minutes" },
  "1h": { step: 120, bars: 30, words: "hour" },
  "6h": { step: 600, bars: 36, words: "6 hours" },
  "24h": { step: 3600, bars: 24, words: "24 hours" },
};

/** How a request can end, in the order in which the bars stack. */
export const OUTCOMES = ["exact", "semantic", "coalesced", "miss", "bypass", "degraded", "error"];

const sum = (tally) => Object.values(tally).reduce((sum, n) => sum + n, 0);

/** The outcomes of a summary of `/stats`, in the order of `OUTCOMES`. */
export const outcomes = (summary) => [
  summary.exact_hits,
  summary.semantic_hits,
  summary.coalesced,
  summary.misses,
  sum(summary.bypasses),
  sum(summary.degraded),
  sum(summary.errors),
];

const minus = (left, right) => left.map((n, index) => Math.max(0, n - right[index]));
const plus = (left, right) => left.map((n, index) => n + right[index]);
const seconds = (text) => Math.floor(Date.parse(text) / 1000);

export class History {
  #range;
  /** What happened in a bar that is over, by where it begins. */
  #closed = new Map();
  #startedAt = null;
  /** The service's own clock; ours may be wrong. */
  #now = null;

  constructor(range) {
    this.range = range;
  }

  get range() {
    return this.#range;
  }

  set range(range) {
    this.#range = range;
    this.#closed.clear();
  }

  /** Asks for the window. Gives `{ stats, bars }`, a bar being `{ at, outcomes }`; null before the start. */
  async poll() {
    const { step, bars } = RANGES[this.#range];
    if (this.#now === null) this.#heard(await get(query("stats", { since: "1m" })));
    const range = this.#range;
    const newest = this.#now - (this.#now % step);
    const edges = Array.from({ length: bars }, (_, index) => newest - (bars - 1 - index) * step);
    const lived = edges.filter((edge) => edge + step > this.#startedAt);
    const over = lived.slice(0, -1);
    const missing = over.filter((edge) => !this.#closed.has(edge));
    const wanted = new Set(missing.flatMap((edge) => [edge, edge + step]));
    const since = new Map();
    const [stats] = await Promise.all([
      get(query("stats", { since: edges[0] })),
      ...[...wanted].map(async (edge) => since.set(edge, outcomes((await get(query("stats", { since: edge }))).totals))),
    ]);
    const restarted = this.#heard(stats);
    // The edges were laid by the clock of the answer before. When a bar has ended since, once more.
    if (restarted || range !== this.#range || this.#now >= newest + step) return this.poll();

    for (const edge of missing) this.#closed.set(edge, minus(since.get(edge), since.get(edge + step)));
    for (const edge of this.#closed.keys()) if (edge < edges[0]) this.#closed.delete(edge);
    const before = over.map((edge) => this.#closed.get(edge)).reduce(plus, OUTCOMES.map(() => 0));
    const current = minus(outcomes(stats.totals), before);
    const happened = (edge) => (edge === newest ? current : this.#closed.get(edge) ?? null);
    return { stats, step, bars: edges.map((at) => ({ at, outcomes: happened(at) })) };
  }

  /** Takes the times in. True when the service was started anew since the last time. */
  #heard(stats) {
    const startedAt = seconds(stats.started_at);
    const restarted = this.#startedAt !== null && startedAt !== this.#startedAt;
    if (restarted) this.#closed.clear();
    this.#startedAt = startedAt;
    this.#now = seconds(stats.now);
    return restarted;
  }
}
