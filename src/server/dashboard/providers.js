// Providers with their limits and keys, and each model at a provider with its breaker, times and alerts.

import { post } from "./api.js";
import { dialog, notice } from "./dialog.js";
import { badge, byId, el, heading, list, row, say, show } from "./dom.js";
import { count, many, millis, NONE, percent, span, words } from "./format.js";
import { alertWords } from "./overview.js";

const PROVIDERS = [
  ["provider", "Provider"],
  ["busy", "In flight", "number"],
  ["waiting", "Waiting", "number"],
  ["calls", "Calls", "number"],
  ["keys", "Keys", "text"],
];
const TARGETS = [
  ["target", "Model"],
  ["breaker", "Breaker", "text"],
  ["errors", "Errors, 1 min", "number"],
  ["p50", "First content p50", "number"],
  ["p99", "First content p99", "number"],
  ["whole", "Whole answer p99", "number"],
  ["alerts", "Alerts", "text"],
  ["hold", "", "action"],
];
const BREAKER = {
  closed: "good", open: "bad", half_open: "warn", ramp: "warn", forced_closed: "warn", forced_open: "bad", isolated: "bad",
};
const KEY = { ready: "good", cooling: "warn", quarantined: "bad" };

export function providers(refresh) {
  heading(byId("providers-table"), PROVIDERS);
  heading(byId("targets-table"), TARGETS);
  const hold = breakers(refresh);

  return {
    update({ stats, providers: { providers, targets }, switches }) {
      const off = new Set(switches.switches.filter(({ on }) => !on).map(({ target }) => target));
      byId("no-providers").hidden = providers.length > 0;
      list(byId("providers-rows"), providers, ({ provider }) => provider, () => row(PROVIDERS), ({ cells }, now) => {
        const note = now.region ? [" ", el("small", {}, now.region)] : [];
        const mark = off.has(`provider:${now.provider}`) ? [" ", badge("switched off", "warn")] : [];
        show(cells.provider, now.provider, ...note, ...mark);
        say(cells.busy, `${count(now.in_flight)} of ${count(now.limit)}`);
        say(cells.waiting, now.queue_depth > 0 ? `${count(now.queue_depth)}, up to ${span((now.queue_age_ms ?? 0) / 1000)}` : "0");
        const seen = stats.upstream[now.provider];
        const failed = seen ? Object.values(seen.errors).reduce((sum, n) => sum + n, 0) : 0;
        say(cells.calls, failed > 0 ? `${count(seen.calls)}, ${count(failed)} failed` : count(seen?.calls ?? 0));
        show(cells.keys, ...keys(now.keys));
      });

      byId("no-targets").hidden = targets.length > 0;
      byId("targets-table").hidden = targets.length === 0;
      list(byId("targets-rows"), targets, ({ provider, model, region }) => `${provider}/${model}/${region ?? ""}`, (target) => {
        const part = { ...row(TARGETS), target };
        const name = `${target.provider}/${target.model}`;
        const button = el("button", { type: "button", "aria-label": `Take hold of the breaker of ${name}` }, "Breaker…");
        button.addEventListener("click", () => hold(part.target));
        part.cells.hold.append(button);
        return part;
      }, (part, now) => {
        part.target = now;
        const { cells } = part;
        const mark = off.has(`target:${now.provider}/${now.model}`) ? [" ", badge("switched off", "warn")] : [];
        show(cells.target, el("small", {}, `${now.provider} / `), now.model, ...mark);
        const { state, for_ms, reason } = now.breaker;
        const rest = for_ms === null ? [] : [" ", el("small", {}, `for ${span(Math.ceil(for_ms / 1000))}`)];
        const why = reason === null ? [] : [el("small", { class: "block" }, reason)];
        show(cells.breaker, badge(words(state), BREAKER[state] ?? "warn"), ...rest, ...why);
        const { last_minute, last_five_minutes, norms } = now;
        say(cells.errors, percent(last_minute.error_rate));
        const usual = norms.first_content_p50_ms === null ? [] : [el("small", { class: "block" }, `usually ${millis(norms.first_content_p50_ms)}`)];
        show(cells.p50, millis(last_five_minutes.first_content.p50_ms), ...usual);
        say(cells.p99, millis(last_five_minutes.first_content.p99_ms));
        say(cells.whole, millis(last_five_minutes.total.p99_ms));
        show(cells.alerts, ...(now.alerts.length === 0 ? ["none"] : now.alerts.map((alert) =>
          badge(alertWords(alert), alert.condition === "error_rate" ? "bad" : "warn"))));
      });
    },
  };
}

/** How many are ready, and each that is not. */
function keys(all) {
  if (all.length === 0) return [NONE];
  const ready = all.filter(({ state }) => state === "ready").length;
  const resting = all.filter(({ state }) => state !== "ready").map(({ key, state, reason, for_ms }) => {
    const rest = for_ms === null ? "" : ` for ${span(Math.ceil(for_ms / 1000))}`;
    return badge(`${key} ${state}${reason ? ` (${reason})` : ""}${rest}`, KEY[state] ?? "warn");
  });
  return [badge(`${ready} of ${many(all.length, "key")} ready`, ready === all.length ? "good" : "warn"), ...resting];
}

function breakers(refresh) {
  let target = null;
  const form = dialog("breaker", async () => {
    const control = new FormData(byId("breaker").querySelector("form")).get("control");
    const { provider, model } = target;
    const controlled = await post("admin/breakers", { provider, model, control });
    notice(control === "automatic" ? `The breaker of ${provider}/${model} decides again: it is ${words(controlled.breaker.state)}.`
      : `The breaker of ${provider}/${model} is ${words(controlled.breaker.state)}, until a restart.`);
    await refresh();
    return true;
  });
  return (chosen) => {
    target = chosen;
    say(byId("breaker-target"), `${chosen.provider}/${chosen.model}`);
    const { state } = chosen.breaker;
    const held = ["forced_open", "forced_closed", "isolated"].includes(state) ? state : "automatic";
    for (const choice of byId("breaker").querySelectorAll("[name=control]")) choice.checked = choice.value === held;
    form.open();
  };
}
