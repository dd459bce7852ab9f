// The numbers that matter, for the chosen window, and what wants somebody's attention.

import { byId, el, list, say, show } from "./dom.js";
import { bytes, count, dollars, many, percent, short, span, words } from "./format.js";

export function overview() {
  const tile = (id, value, note) => {
    say(byId(`${id}-value`), value);
    say(byId(`${id}-note`), note);
  };

  return {
    update({ stats, providers, switches }) {
      const { totals, layers, load } = stats;
      const all = totals.exact_hits + totals.semantic_hits;
      const rate = totals.hit_rate;
      const share = (hits) => percent((rate * hits) / all, 0);
      tile("hit-rate", percent(rate), rate ? `${share(totals.exact_hits)} exact, ${share(totals.semantic_hits)} in other words` : "no hits yet");
      const errors = Object.values(totals.errors).reduce((sum, n) => sum + n, 0);
      tile("requests", short(totals.requests), `${count(load.in_flight_requests)} under way, ${many(errors, "error")}`);
      const unpriced = stats.unpriced_models;
      tile("money", dollars(totals.money_saved_usd), `${dollars(totals.money_spent_usd)} spent${unpriced.length === 0 ? ""
        : `, no price for ${unpriced.length === 1 ? unpriced[0] : many(unpriced.length, "model")}`}`);
      byId("money-note").title = unpriced.length > 1 ? unpriced.join(", ") : "";
      const { total, estimated } = totals.tokens_saved;
      const about = total > 0 && estimated > 0 ? `, ${percent(estimated / total, 0)} estimated` : "";
      tile("tokens", short(total), `${short(totals.tokens_spent.total)} spent${about}`);
      tile("time", span(totals.seconds_saved), "waiting that callers were spared");
      tile("entries", layers.semantic ? short(layers.semantic.entries) : "?",
        layers.semantic ? `${short(layers.exact.entries)} in memory, ${bytes(layers.exact.bytes)}` : "the store does not answer");
      attention({ stats, providers, switches });
    },
  };
}

/** Whether a switch makes anything other than configured: "on" means that, but for `cache_only`. */
export const unusual = ({ target, on }) => on === (target === "feature:cache_only");

/** What is not as it should be, worst first. */
function troubles({ stats, providers, switches }) {
  const found = [];
  const add = (kind, what, why, href) => found.push({ kind, what, why, href });
  if (!stats.layers.semantic) add("bad", "store", "does not answer", "#overview");
  if (stats.load.write_queue_depth > 100) {
    add("warn", "store", `${count(stats.load.write_queue_depth)} answers wait to be written`, "#overview");
  }
  for (const { provider, model, breaker, alerts } of providers.targets) {
    const name = `${provider}/${model}`;
    if (breaker.state !== "closed") {
      add(breaker.state === "open" ? "bad" : "warn", name, `breaker ${words(breaker.state)}`, "#providers");
    }
    for (const alert of alerts) {
      add(alert.condition === "error_rate" ? "bad" : "warn", name, measured(alert), "#providers");
    }
  }
  for (const { provider, keys, queue_depth } of providers.providers) {
    for (const { key, state, reason } of keys) {
      if (state === "quarantined") add("bad", provider, `${key} quarantined${reason ? ` (${reason})` : ""}`, "#providers");
    }
    if (queue_depth > 0) add("warn", provider, `${many(queue_depth, "request")} waiting`, "#providers");
  }
  for (const { target, on, by } of switches.switches.filter(unusual)) {
    add("warn", target, `switched ${on ? "on" : "off"} by ${by}`, "#switches");
  }
  return found.sort((left, right) => left.kind.localeCompare(right.kind));
}

/** Without its age: this is read aloud whenever it changes. */
const measured = ({ condition, measured_ratio }) => (condition === "error_rate" ? `error rate ${percent(measured_ratio, 0)}`
  : `${words(condition)} ${measured_ratio.toFixed(1)} × usual`);

export const alertWords = (alert) => `${measured(alert)} for ${span(alert.standing_seconds)}`;

function attention(state) {
  const found = troubles(state);
  document.title = found.length === 0 ? "Refrain" : `(${found.length}) Refrain`;
  byId("attention").classList.toggle("quiet", found.length === 0);
  say(byId("attention-words"), found.length === 0
    ? "All quiet: no alerts, every breaker closed, nothing switched." : `${many(found.length, "thing")} to look at`);
  list(byId("attention-list"), found, ({ what, why }) => `${what} ${why}`, () => ({ node: el("li") }),
    ({ node }, { kind, what, why, href }) =>
      show(node, el("i", { class: `mark ${kind}`, "aria-hidden": "true" }), el("a", { href }, el("b", {}, what), ` ${why}`)));
}
