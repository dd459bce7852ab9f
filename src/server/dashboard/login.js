// Asks for the admin token, and only when the service wants one.

import { hasToken, useToken } from "./api.js";
import { dialog } from "./dialog.js";
import { byId } from "./dom.js";

/** `loggedIn()` runs once there is a token to try. */
export function login(loggedIn) {
  const token = byId("token");
  const form = dialog("login", async () => {
    // Anything else the browser would refuse to send, and no configured token can have.
    if (!/^[\x20-\x7e]+$/.test(token.value.trim())) {
      form.wrong("A token has only ASCII characters.");
      return false;
    }
    useToken(token.value.trim());
    token.value = "";
    form.close();
    await loggedIn();
    return false;
  });
  // There is nothing behind it to go back to.
  byId("login").addEventListener("cancel", (event) => event.preventDefault());
  byId("forget").addEventListener("click", () => {
    useToken(null);
    location.reload();
  });

  return {
    /** Asks, unless it is asking already. */
    ask() {
      if (form.isOpen()) return;
      const tried = hasToken();
      useToken(null);
      form.open();
      if (tried) form.wrong("That is not this service's token.");
      token.focus();
    },
    isOpen: form.isOpen,
    update() {
      byId("forget").hidden = !hasToken();
    },
  };
}
