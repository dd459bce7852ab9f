// Dialogs that ask for something and do it, and the notices that say what came of it.

import { Refused, Unauthorized, Unreachable } from "./api.js";
import { byId, el, say } from "./dom.js";

/** How long a good notice stays; a bad one stays until it is closed. */
const READING = 10_000;

/** Says something at the edge of the page. Kinds: `good`, `warn`, `bad`. */
export function notice(text, kind = "good") {
  const close = el("button", { type: "button", class: "quiet-button", "aria-label": "Close this notice" }, "×");
  const node = el("li", { class: `notice ${kind}` }, el("span", {}, text), close);
  close.addEventListener("click", () => node.remove());
  byId("notices").append(node);
  if (kind === "good") setTimeout(() => node.remove(), READING);
}

/** What went wrong, for whoever pressed the button. */
export function inWords(error) {
  if (error instanceof Unreachable) return `The service does not answer (${error.message}). Nothing is known of what became of this.`;
  if (error instanceof Unauthorized) return "The token is not accepted any more: reload the page and give another one.";
  if (error instanceof Refused) return error.message;
  throw error;
}

/**
 * A dialog with a form. `act()` runs when the form is sent; while it does, the form cannot be sent again, and
 * what goes wrong is said in the dialog. It closes when `act` gives true.
 */
export function dialog(id, act) {
  const node = byId(id);
  const form = node.querySelector("form");
  const wrong = node.querySelector("[role=alert]");
  const send = node.querySelector("[type=submit]");
  node.querySelector("[data-close]")?.addEventListener("click", () => node.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.getAttribute("aria-busy") === "true") return;
    send.setAttribute("aria-busy", "true");
    say(wrong, "");
    try {
      if (await act()) node.close();
    } catch (error) {
      say(wrong, inWords(error));
    } finally {
      send.removeAttribute("aria-busy");
    }
  });
  return {
    open() {
      say(wrong, "");
      node.showModal();
    },
    close: () => node.close(),
    isOpen: () => node.open,
    wrong: (text) => say(wrong, text),
  };
}
