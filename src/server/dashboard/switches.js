// Switches: what is switched, by whom and why, and flipping.

import { get, post, query, remove } from "./api.js";
import { dialog, notice } from "./dialog.js";
import { attribute, badge, byId, el, heading, list, row, say, show } from "./dom.js";
import { time } from "./format.js";
import { unusual } from "./overview.js";

const COLUMNS = [
  ["name", "Switch"],
  ["state", "State", "text"],
  ["why", "What it does, or who switched it", "text"],
  ["flip", "", "action"],
];
const CHANGES = [
  ["at", "When"],
  ["target", "Switch", "text"],
  ["on", "To", "text"],
  ["by", "Who", "text"],
  ["reason", "Why", "text"],
];

/** The parts of the service that can be switched, and what callers notice. */
const FEATURES = [
  { target: "feature:semantic", normally: true, effect: "Off: only the same words hit, to the letter." },
  { target: "feature:write_back", normally: true, effect: "Off: new answers are not kept." },
  { target: "feature:stale", normally: true, effect: "Off: no answer past its time when every provider fails." },
  { target: "feature:hedging", normally: true, effect: "Off: no second call when the first is slow." },
  { target: "feature:cache_only", normally: false, effect: "On: no provider is called; a miss is a 503." },
];
const WHO = "refrain.by";
const AUDIT = 20;

export function switches(refresh) {
  heading(byId("switches-table"), COLUMNS);
  heading(byId("changes-table"), CHANGES);
  const flip = flipping(async () => {
    await refresh();
    await changes();
  });
  byId("switch-other").addEventListener("click", () => flip({}));
  byId("changes").addEventListener("toggle", () => changes());

  async function changes() {
    if (!byId("changes").open) return;
    const { audit } = await get(query("admin/switches", { audit: true }));
    byId("no-changes").hidden = audit.length > 0;
    byId("changes-table").hidden = audit.length === 0;
    list(byId("changes-rows"), audit.slice(-AUDIT).reverse(), ({ number }) => number, (change) => {
      const { node, cells } = row(CHANGES);
      const on = change.on === null ? "cleared" : change.on ? "on" : "off";
      for (const [name, text] of Object.entries({ ...change, at: time(change.at), on })) if (cells[name]) say(cells[name], text);
      return { node };
    });
  }

  return {
    update({ stats, providers, switches: { switches } }) {
      const set = new Map(switches.map((one) => [one.target, one]));
      const others = switches.filter(({ target }) => !FEATURES.some((feature) => feature.target === target))
        .map(({ target }) => ({ target, normally: true }));
      list(byId("switches-rows"), [...FEATURES, ...others], ({ target }) => target, ({ target, normally }) => {
        const part = { ...row(COLUMNS), button: el("button", { type: "button" }), now: null };
        const [kind, ...name] = target.split(":");
        part.cells.name.append(el("small", {}, `${kind}:`), name.join(":"));
        part.cells.flip.append(part.button);
        part.button.addEventListener("click", () => flip(part.now ? { target, clear: true } : { target, on: !normally }));
        return part;
      }, (part, { target, normally, effect }) => {
        const { cells, button } = part;
        const now = set.get(target) ?? null;
        part.now = now;
        const on = now ? now.on : normally;
        show(cells.state, badge(on ? "on" : "off", now && unusual(now) ? "warn" : "quiet"));
        show(cells.why, ...(now ? who(now) : [effect]));
        say(button, now ? "Clear…" : normally ? "Switch off…" : "Switch on…");
        attribute(button, "aria-label", `${now ? "Clear" : normally ? "Switch off" : "Switch on"} ${target}`);
      });
      const known = [
        ...providers.providers.map(({ provider }) => `provider:${provider}`),
        ...providers.targets.map(({ provider, model }) => `target:${provider}/${model}`),
        ...Object.keys(stats.namespaces).map((name) => `namespace:${name}`),
        "model:",
      ];
      list(byId("flip-known"), known, (target) => target, (value) => ({ node: el("option", { value }) }));
    },
  };
}

const who = ({ by, reason, since, until }) => [
  reason,
  el("small", { class: "block" }, `${by}, since ${time(since)}, ${until ? `until ${time(until)}` : "until it is cleared"}`),
];

/** The dialog: what, to what, for how long, by whom and why. */
function flipping(done) {
  const [target, on, lasting, by, reason] = ["flip-target", "flip-on", "flip-for", "flip-by", "flip-reason"].map(byId);
  let clear = false;
  const form = dialog("flip", async () => {
    const said = { by: by.value.trim(), reason: reason.value.trim() };
    sessionStorage.setItem(WHO, said.by);
    const name = target.value.trim();
    const flipped = clear
      ? await remove(query(`admin/switches/${encodeURIComponent(name)}`, said))
      : await post("admin/switches", {
        ...said, target: name, on: on.value === "on", ...(lasting.value ? { for: lasting.value } : {}),
      });
    const state = flipped.on === null ? "as configured" : flipped.on ? "on" : "off";
    notice(`${flipped.target} is ${state} from now on${flipped.until ? `, until ${time(flipped.until)}` : ""}.`);
    if (flipped.kept !== "on_disk") notice(`${flipped.target}: NOT ON DISK (${flipped.error}). After a restart it is as it was before.`, "bad");
    if (flipped.note) notice(flipped.note, "warn");
    await done();
    return true;
  });

  return (wanted) => {
    clear = wanted.clear ?? false;
    const fixed = wanted.target !== undefined;
    target.value = wanted.target ?? "";
    target.readOnly = fixed;
    on.value = wanted.on ? "on" : "off";
    lasting.value = "";
    reason.value = "";
    by.value = sessionStorage.getItem(WHO) ?? "";
    byId("flip-state").hidden = clear || fixed;
    byId("flip-lasting").hidden = clear;
    const title = clear ? "Clear a switch" : !fixed ? "Switch something" : wanted.on ? "Switch on" : "Switch off";
    say(byId("flip-title"), title);
    say(byId("flip-send"), clear ? "Clear it" : !fixed ? "Switch it" : wanted.on ? "Switch it on" : "Switch it off");
    form.open();
    (fixed ? reason : target).focus();
  };
}
