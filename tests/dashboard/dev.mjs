// Serves the dashboard's files as the binary does, and passes everything else on to the binary's admin listener:
// to work on the files without building. `node dev.mjs http://127.0.0.1:8081 [port]`

import { createReadStream, statSync } from "node:fs";
import { createServer, request } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const ASSETS = process.env.DASHBOARD_ASSETS ?? fileURLToPath(new URL("../../src/server/dashboard", import.meta.url));
const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml", ".LICENSE": "text/plain; charset=utf-8",
};
/** As `src/server/dashboard.rs` has it. */
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Listens on a free port unless told; gives `{ url, close() }`. */
export async function dev(admin, port = 0) {
  const server = createServer((asked, reply) => {
    const path = decodeURIComponent(new URL(asked.url, "http://dev").pathname);
    if (path === "/dashboard" || path.startsWith("/dashboard/")) file(path.slice("/dashboard/".length) || "index.html", reply);
    else proxy(admin, asked, reply);
  });
  await new Promise((listening) => server.listen(port, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => new Promise((closed) => {
      server.closeAllConnections();
      server.close(closed);
    }),
  };
}

function file(name, reply) {
  const path = join(ASSETS, normalize(`/${name}`));
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return reply.writeHead(404).end();
  reply.writeHead(200, {
    "content-type": TYPES[extname(path)] ?? "application/octet-stream",
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
  });
  createReadStream(path).pipe(reply);
}

/** The page's own origin becomes the service's, as if it had come from there. */
function proxy(admin, asked, reply) {
  const headers = { ...asked.headers, host: new URL(admin).host };
  if (headers.origin === `http://${asked.headers.host}`) headers.origin = admin;
  const onward = request(new URL(asked.url, admin), { method: asked.method, headers }, (answer) => {
    reply.writeHead(answer.statusCode, answer.headers);
    answer.pipe(reply);
  });
  // Nobody there: what the browser would see without us in between is a connection that breaks.
  onward.on("error", () => reply.destroy());
  asked.pipe(onward);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await dev(process.argv[2] ?? "http://127.0.0.1:8081", Number(process.argv[3] ?? 0));
  console.log(`${url}/dashboard`);
}
