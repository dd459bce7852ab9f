// Asks the service every two seconds, and tells each panel. Stops while nobody looks, says when the service is
// gone, and goes on when it is back.

import { get, Refused, Unauthorized, Unreachable } from "./api.js";
import { byId, say } from "./dom.js";
import { explain } from "./explain.js";
import { span, timeOfDay } from "./format.js";
import { History, RANGES } from "./history.js";
import { latency, reasons } from "./latency.js";
import { login } from "./login.js";
import { namespaces } from "./namespaces.js";
import { overview } from "./overview.js";
import { providers } from "./providers.js";
import { switches } from "./switches.js";
import { traffic } from "./traffic.js";

const EVERY = 2_000;
const RANGE = "refrain.range";

const kept = sessionStorage.getItem(RANGE);
const history = new History(kept in RANGES ? kept : "1h");
const panels = [
  overview(), traffic(), latency(), reasons(), providers(poll), namespaces(poll), switches(poll), explain(),
];
const door = login(poll);

let timer = null;
/** The poll under way: whoever wants another one meanwhile waits for it, and then for one of its own. */
let polling = null;
let lostSince = null;

async function poll() {
  clearTimeout(timer);
  if (polling) await polling;
  if (polling) return polling;
  polling = once().finally(() => {
    polling = null;
    clearTimeout(timer);
    if (!document.hidden && !door.isOpen()) timer = setTimeout(poll, EVERY);
  });
  return polling;
}

async function once() {
  try {
    const [window, standing, switched] = await Promise.all([history.poll(), get("stats/providers"), get("admin/switches")]);
    const state = { ...window, providers: standing, switches: switched, range: history.range };
    for (const panel of panels) panel.update(state);
    door.update();
    alive(state);
    for (const panel of panels) await panel.after?.(state);
  } catch (error) {
    if (error instanceof Unauthorized) door.ask();
    else if (error instanceof Unreachable || error instanceof Refused) lost(error);
    else throw error;
  }
}

function alive({ stats }) {
  lostSince = null;
  document.body.dataset.link = "live";
  say(byId("link-words"), "Live");
  say(byId("link-time"), timeOfDay(stats.now));
  const up = (Date.parse(stats.now) - Date.parse(stats.started_at)) / 1000;
  say(byId("uptime"), `up ${span(up < 60 ? up : up - (up % 60))}`);
  byId("lost").hidden = true;
}

function lost(error) {
  lostSince ??= Date.now();
  document.body.dataset.link = "lost";
  say(byId("link-words"), "Lost");
  document.title = "Lost: Refrain";
  say(byId("attention-words"), "How things stand is not known.");
  byId("lost").hidden = false;
  const what = error instanceof Refused ? "Refrain refuses to tell" : "Refrain does not answer";
  say(byId("lost-words"), `${what} since ${timeOfDay(lostSince)}: ${error.message}. What you see is from before; asking again every two seconds.`);
}

for (const choice of document.querySelectorAll("[name=range]")) {
  choice.checked = choice.value === history.range;
  choice.addEventListener("change", () => {
    history.range = choice.value;
    sessionStorage.setItem(RANGE, choice.value);
    poll();
  });
}
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else poll();
});
poll();
