// Namespaces: what they hold, what they saved, and taking answers back.

import { get, post, query, Refused } from "./api.js";
import { dialog, notice } from "./dialog.js";
import { badge, byId, el, heading, list, row, say, show } from "./dom.js";
import { count, dollars, many, NONE, percent, short, span } from "./format.js";

const COLUMNS = [
  ["namespace", "Namespace"],
  ["requests", "Requests", "number"],
  ["rate", "Hit rate", "number"],
  ["saved", "Saved", "number"],
  ["size", "Stored", "number"],
  ["memory", "In memory", "number"],
  ["age", "Age", "number"],
  ["evict", "", "action"],
];

/** Entries are counted anew when something was written or taken, and this often, in milliseconds, at most. */
const COUNTING = 10_000;
/** And no less often than this: entries expire, too. */
const RECOUNTING = 300_000;
/** Entries looked at for the age. They come in the order of their ids, which are hashes: a fair sample. */
const SAMPLE = 200;

export function namespaces(refresh) {
  heading(byId("namespaces-table"), COLUMNS);
  /** By namespace: `{ mark, at, exact, store, age }`. */
  const sizes = new Map();
  const evict = eviction(async (namespace) => {
    sizes.delete(namespace);
    await refresh();
  });

  /** Counts what needs it. A dry run leaves a line in the service's log, so it is not made with every poll. */
  async function measure({ stats }) {
    const settled = stats.load.write_queue_depth === 0;
    await Promise.all(Object.entries(stats.namespaces).map(async ([namespace, summary]) => {
      const mark = `${stats.started_at} ${stats.since} ${summary.stored} ${JSON.stringify(summary.evicted)}`;
      const known = sizes.get(namespace);
      const age = known ? Date.now() - known.at : Infinity;
      if (age < COUNTING || (age < RECOUNTING && known.mark === mark && known.settled)) return;
      const [{ exact, store }, page] = await Promise.all([
        post("admin/evict", { namespace, dry_run: true }),
        get(query("admin/entries", { namespace, limit: SAMPLE })),
      ]);
      const ages = page.entries.map(({ age }) => age).sort((left, right) => left - right);
      sizes.set(namespace, { mark, settled, at: Date.now(), exact, store, ages, sampled: page.next !== undefined });
    }));
  }

  function update({ stats, switches }) {
    const off = new Set(switches.switches.filter(({ on }) => !on).map(({ target }) => target));
    list(byId("namespaces-rows"), Object.entries(stats.namespaces), ([name]) => name, ([name]) => {
      const part = row(COLUMNS);
      const button = el("button", { type: "button", "aria-label": `Evict answers of the namespace ${name}` }, "Evict…");
      button.addEventListener("click", () => evict(name));
      part.cells.evict.append(button);
      return part;
    }, ({ cells }, [name, summary]) => {
      show(cells.namespace, name, ...(off.has(`namespace:${name}`) ? [" ", badge("switched off", "warn")] : []));
      say(cells.requests, short(summary.requests));
      say(cells.rate, percent(summary.hit_rate));
      say(cells.saved, dollars(summary.money_saved_usd));
      const size = sizes.get(name);
      say(cells.size, size ? count(size.store) : NONE);
      say(cells.memory, size ? count(size.exact) : NONE);
      show(cells.age, ...ageWords(size));
    });
  }

  return {
    update,
    async after(state) {
      try {
        await measure(state);
        say(byId("namespaces-wrong"), "");
      } catch (error) {
        // The store failed: the rest of the page is right all the same.
        if (!(error instanceof Refused)) throw error;
        say(byId("namespaces-wrong"), `Sizes and ages cannot be had now: ${error.message}.`);
      }
      update(state);
    },
  };
}

function ageWords(size) {
  if (!size || size.ages.length === 0) return [NONE];
  const older = Math.round((Date.now() - size.at) / 1000);
  const at = (place) => span(coarse(size.ages[place] + older));
  const middle = at(size.ages.length >> 1);
  const edge = size.sampled ? `median of ${SAMPLE}` : size.ages.length > 1 ? `oldest ${at(size.ages.length - 1)}` : "";
  return edge ? [middle, el("small", { class: "block" }, edge)] : [middle];
}

/** So that an age does not move with every poll. */
const coarse = (age) => (age < 60 ? age - (age % 10) || 5 : age < 3_600 ? age - (age % 60) : age - (age % 3_600));

/** The dialog: a dry run first, then the namespace's name by hand, then it is done. */
function eviction(evicted) {
  const [tag, older, name] = ["evict-tag", "evict-older", "evict-name"].map(byId);
  const send = byId("evict-send");
  let namespace = "";
  /** What the last dry run was for, and found. */
  let dry = null;

  const what = () => ({
    namespace,
    ...(tag.value.trim() ? { tag: tag.value.trim() } : {}),
    ...(older.value.trim() ? { older_than: older.value.trim() } : {}),
  });
  const form = dialog("evict", async () => {
    if (dry === null) {
      const asked = what();
      const found = await post("admin/evict", { ...asked, dry_run: true });
      if (JSON.stringify(asked) !== JSON.stringify(what())) return false;
      say(byId("evict-result"), `${many(found.store, "answer")} would go from the store, ${count(found.exact)} from memory.`);
      if (found.store + found.exact > 0) {
        dry = found;
        reveal();
        name.focus();
      }
      return false;
    }
    if (name.value.trim() !== namespace) {
      form.wrong(`Type ${namespace} to confirm.`);
      name.focus();
      return false;
    }
    const went = await post("admin/evict", what());
    notice(`Evicted from ${namespace}: ${many(went.store, "answer")} from the store, ${count(went.exact)} from memory.`);
    await evicted(namespace);
    return true;
  });

  function reveal() {
    byId("evict-sure").hidden = dry === null;
    send.classList.toggle("danger", dry !== null);
    say(send, dry === null ? "Dry run" : `Evict ${many(Math.max(dry.store, dry.exact), "answer")}`);
    send.disabled = dry !== null && name.value.trim() !== namespace;
  }
  const again = () => {
    dry = null;
    name.value = "";
    say(byId("evict-result"), "Nothing goes before you have seen how much it is.");
    reveal();
  };
  tag.addEventListener("input", again);
  older.addEventListener("input", again);
  name.addEventListener("input", reveal);

  return (chosen) => {
    namespace = chosen;
    tag.value = "";
    older.value = "";
    for (const place of document.querySelectorAll("[data-namespace]")) say(place, chosen);
    again();
    form.open();
    send.focus();
  };
}
