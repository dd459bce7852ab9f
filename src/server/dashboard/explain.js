// What would happen to a question, and why. Nothing is asked of a provider, and nothing is counted.

import { post } from "./api.js";
import { inWords } from "./dialog.js";
import { badge, byId, el, heading, list, row, say, show } from "./dom.js";
import { NONE, percent, span, words } from "./format.js";

const COLUMNS = [
  ["question", "Stored question"],
  ["similarity", "Similarity", "number"],
  ["probability", "Same, by the verifier", "number"],
  ["verdict", "Verdict", "text"],
  ["age", "Age", "number"],
];
const OUTCOMES = {
  exact: ["Hit, to the letter", "good"],
  semantic: ["Hit, in other words", "good"],
  miss: ["Miss: goes to the LLM", "warn"],
  bypass: ["Goes past the cache", "warn"],
};

/** The text for a header, whose letters stand for bytes. */
const utf8 = (text) => String.fromCharCode(...new TextEncoder().encode(text));

export function explain() {
  const form = byId("explain-form");
  const [question, model, namespace, tenant] = ["explain-question", "explain-model", "explain-namespace", "explain-tenant"].map(byId);
  const [send, wrong, result] = ["explain-send", "explain-wrong", "explain-result"].map(byId);
  heading(byId("candidates-table"), COLUMNS);

  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.getAttribute("aria-busy") === "true") return;
    send.setAttribute("aria-busy", "true");
    say(wrong, "");
    const headers = {};
    if (namespace.value) headers["x-refrain-namespace"] = utf8(namespace.value);
    if (tenant.value.trim()) headers["x-refrain-tenant"] = tenant.value.trim();
    const body = { model: model.value.trim() || "default", messages: [{ role: "user", content: question.value }] };
    try {
      answer(await post("admin/explain", body, headers));
    } catch (error) {
      result.hidden = true;
      byId("explain-empty").hidden = false;
      // A header that cannot be written.
      say(wrong, error instanceof TypeError ? "The tenant is written as entries show it." : inWords(error));
    } finally {
      send.removeAttribute("aria-busy");
    }
  });

  function answer(explained) {
    const [title, kind] = OUTCOMES[explained.outcome] ?? [explained.outcome, "quiet"];
    byId("explain-empty").hidden = true;
    result.hidden = false;
    show(byId("explain-outcome"), badge(title, kind));
    say(byId("explain-why"), `${explained.why[0].toUpperCase()}${explained.why.slice(1)}.`);
    const facts = [
      ["Namespace", `${explained.namespace}, epoch ${explained.epoch}`],
      ["Tenant", explained.tenant],
      ["Model", explained.model],
      ["Encoder", explained.embedder ?? "not asked"],
      ["Scope", explained.scope],
      ["Entry", explained.id],
    ];
    list(byId("explain-facts"), facts, ([name]) => name, ([name]) => {
      const value = el("dd");
      return { node: el("div", {}, el("dt", {}, name), value), value };
    }, ({ value }, [, text]) => say(value, text));
    ruler(explained);
    byId("candidates-table").hidden = explained.candidates.length === 0;
    list(byId("candidates-rows"), explained.candidates, ({ id }) => id, () => row(COLUMNS), ({ cells }, candidate) => {
      const { question, similarity, probability, verdict, servable, age, ttl } = candidate;
      say(cells.question, question);
      say(cells.similarity, similarity.toFixed(4));
      say(cells.probability, probability === null ? NONE : percent(probability));
      const same = verdict === "same";
      show(cells.verdict, badge(same ? "same question" : `refused: ${words(verdict)}`, same ? "good" : "quiet"),
        ...(servable ? [] : [badge("too old, or purged", "warn")]));
      show(cells.age, span(age), el("small", { class: "block" }, ttl > 0 ? `${span(ttl)} left` : "expired"));
    });
  }

  /** The candidates on a scale of similarity, with the threshold. */
  function ruler({ candidates, threshold }) {
    byId("ruler").hidden = threshold === null || candidates.length === 0;
    if (byId("ruler").hidden) return;
    const low = Math.max(-1, Math.min(0.5, Math.floor(Math.min(threshold, ...candidates.map(({ similarity }) => similarity)) * 10) / 10));
    const at = (similarity) => `${(100 * (similarity - low)) / (1 - low)}%`;
    byId("ruler-line").style.setProperty("--at", at(threshold));
    byId("ruler-above").style.setProperty("--at", at(threshold));
    say(byId("ruler-threshold"), `threshold ${threshold.toFixed(2)}`);
    byId("ruler-threshold").style.setProperty("--at", at(threshold));
    say(byId("ruler-low"), low.toFixed(2));
    list(byId("ruler-dots"), candidates, ({ id }) => id, () => ({ node: el("i") }), ({ node }, { similarity, verdict }) => {
      node.className = verdict === "same" ? "dot same" : "dot";
      node.style.setProperty("--at", at(similarity));
    });
    byId("ruler").setAttribute("aria-label",
      `Similarities ${candidates.map(({ similarity }) => similarity.toFixed(3)).join(", ")}; threshold ${threshold.toFixed(3)}`);
  }

  return {
    update({ stats }) {
      const names = Object.keys(stats.namespaces);
      list(namespace, ["", ...names], (name) => name, (value) => ({ node: el("option", { value }, value || "as configured") }));
    },
  };
}
