// Hit rate by layer, and requests by how they ended, over time.

import { Bars } from "./charts.js";
import { byId, say } from "./dom.js";
import { count, percent, short } from "./format.js";
import { OUTCOMES, RANGES } from "./history.js";

const place = (outcome) => OUTCOMES.indexOf(outcome);

/** What the cache had a chance to answer: neither past it nor an error. */
const cacheable = ({ outcomes }) =>
  ["exact", "semantic", "coalesced", "miss", "degraded"].reduce((sum, outcome) => sum + outcomes[place(outcome)], 0);

/** `outcome` summed over bars. */
const over = (bars, value) => bars.filter((bar) => bar.outcomes).reduce((sum, bar) => sum + value(bar), 0);

function share(label, outcome) {
  const of = ({ outcomes }) => outcomes[place(outcome)];
  return {
    label,
    color: outcome,
    value: (bar) => (cacheable(bar) === 0 ? null : of(bar) / cacheable(bar)),
    total: (bars) => (over(bars, cacheable) === 0 ? null : over(bars, of) / over(bars, cacheable)),
  };
}

const number = (outcome) => ({
  label: outcome,
  color: outcome,
  value: ({ outcomes }) => outcomes[place(outcome)],
  total: (bars) => over(bars, ({ outcomes }) => outcomes[place(outcome)]),
});

/** The next round number: a scale that does not jump with every request. */
function round(n) {
  const size = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  return [1, 2, 4, 5, 8, 10].map((step) => step * size).find((end) => end >= n);
}

export function traffic() {
  const rate = new Bars(byId("rate-chart"), byId("rate-legend"), byId("rate-when"), {
    name: "Hit rate by layer over time",
    series: [share("exact", "exact"), share("semantic", "semantic")],
    format: (value, axis) => percent(value, axis ? 0 : 1),
    top: () => 1,
  });
  const requests = new Bars(byId("requests-chart"), byId("requests-legend"), byId("requests-when"), {
    name: "Requests over time, by how they ended",
    series: OUTCOMES.map(number),
    format: (value, axis) => (axis ? (Number.isInteger(value) ? short(value) : "") : count(value)),
    top: (highest) => Math.max(4, round(highest)),
  });
  const empty = byId("no-requests");
  const curl = byId("curl");
  // The callers' listener is not known here; this is where it is unless configured otherwise.
  const body = JSON.stringify({ model: "default", messages: [{ role: "user", content: "How do I reset my password?" }] });
  say(curl, `curl -si ${location.protocol}//${location.hostname}:8080/v1/chat/completions -H 'content-type: application/json' -d '${body}'`);
  const copy = byId("copy-curl");
  copy.hidden = !navigator.clipboard;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(curl.textContent);
    say(copy, "Copied");
    setTimeout(() => say(copy, "Copy"), 2_000);
  });

  return {
    update({ stats, bars, range }) {
      const none = stats.totals.requests === 0;
      empty.hidden = !none;
      say(byId("no-requests-words"), `No requests in the last ${RANGES[range].words} yet. Send one:`);
      rate.update(bars, RANGES[range].words);
      requests.update(bars, RANGES[range].words);
    },
  };
}
