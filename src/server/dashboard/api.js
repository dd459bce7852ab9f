// The way to the service. Paths are relative to this file, so a prefix in front of the service is no trouble.

const ROOT = new URL("../", import.meta.url);
const TOKEN = "refrain.admin-token";

/** No poll waits longer; an eviction may. */
const PATIENCE = 10_000;
const LONG_PATIENCE = 60_000;

/** The service does not answer at all. */
export class Unreachable extends Error {}

/** It wants a token, or another one. */
export class Unauthorized extends Error {}

/** It answered that it will not. The message is its own. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let token = sessionStorage.getItem(TOKEN);

export const hasToken = () => token !== null;

/** Keeps the token for this tab only, until it is closed. */
export function useToken(text) {
  token = text;
  if (text === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, text);
}

export const get = (path) => send(path, {}, PATIENCE);

export const post = (path, body, headers = {}) =>
  send(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } },
    LONG_PATIENCE);

export const remove = (path) => send(path, { method: "DELETE" }, LONG_PATIENCE);

/** A path with its query. */
export const query = (path, parameters) => `${path}?${new URLSearchParams(parameters)}`;

async function send(path, options, patience) {
  const headers = new Headers(options.headers);
  if (token !== null) headers.set("authorization", `Bearer ${token}`);
  let reply;
  try {
    // Not `mode: "same-origin"`: with our referrer policy that would make a POST's Origin "null", which the
    // service takes for another page's.
    reply = await fetch(new URL(path, ROOT), {
      ...options,
      headers,
      // No word on caching with a POST: the browser would say it to the service in `Cache-Control`, and explain
      // would take it for the caller's wish.
      cache: options.method === "POST" ? "default" : "no-store",
      credentials: "omit",
      redirect: "error",
      signal: AbortSignal.timeout(patience),
    });
  } catch (error) {
    if (error instanceof TypeError || error.name === "TimeoutError" || error.name === "AbortError") {
      throw new Unreachable(error.name === "TimeoutError" ? "no answer in time" : "no connection");
    }
    throw error;
  }
  const body = await reply.json().catch(() => null);
  if (reply.ok && body !== null) return body;
  const message = body?.error?.message ?? `the service answered ${reply.status} without a reason`;
  if (reply.status === 401) throw new Unauthorized(message);
  if (reply.status >= 502 && body === null) throw new Unreachable(`a proxy answered ${reply.status}`);
  throw new Refused(reply.status, message);
}
