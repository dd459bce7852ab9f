// Starts the binary under test, with a folder and ports of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { dev } from "./dev.mjs";

/** The longest that anything is waited for; a debug build loads its models in some seconds. */
export const PATIENCE = 60_000;

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { CARGO_TARGET_DIR = "target", DASHBOARD_DEV } = process.env;
const REFRAIN_BIN = process.env.REFRAIN_BIN ?? resolve(ROOT, CARGO_TARGET_DIR, "debug", "refrain");

/** Where the encoders are; the service runs in a folder of its own, so their default place is not found. */
const MODELS = {
  REFRAIN__EMBEDDER__FOLDER: join(ROOT, "models"),
  ORT_DYLIB_PATH: join(ROOT, "models", "lib", "libonnxruntime.so"),
};

/** Waits until `ready()` gives something, asking again whenever what it waits for may have moved on. */
export async function until(what, ready) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await ready();
    if (found) return found;
    if (Date.now() > end) throw new Error(`in vain: ${what}`);
    await new Promise((later) => setTimeout(later, 50));
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Refrain with the defaults, what `config` adds in TOML, and an admin token unless it is null. */
export class Service {
  static async start({ token = "night-shift", config = "", environment = {} } = {}) {
    const service = new Service();
    service.token = token;
    service.folder = await mkdtemp(join(tmpdir(), "refrain-dashboard-"));
    service.config = join(service.folder, "refrain.toml");
    await writeFile(service.config, config);
    [service.callers, service.operators] = [await freePort(), await freePort()];
    service.environment = environment;
    service.admin = `http://127.0.0.1:${service.operators}`;
    await service.up();
    service.dev = DASHBOARD_DEV ? await dev(service.admin) : null;
    service.dashboard = `${service.dev?.url ?? service.admin}/dashboard`;
    return service;
  }

  /** Starts the process, with the same ports and folder each time. */
  async up() {
    const { OPENAI_API_KEY, ANTHROPIC_API_KEY, ...environment } = process.env;
    this.log = "";
    this.process = spawn(REFRAIN_BIN, ["serve", "--config", this.config], {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...environment,
        ...MODELS,
        // On a busy machine a late vector is a miss by default.
        REFRAIN__EMBEDDER__TIMEOUT: "20s",
        REFRAIN__STORE__READ_TIMEOUT: "20s",
        REFRAIN__SERVER__LISTEN: `127.0.0.1:${this.callers}`,
        REFRAIN__ADMIN__LISTEN: `127.0.0.1:${this.operators}`,
        REFRAIN__STORE__PATH: join(this.folder, "data"),
        ...(this.token === null ? {} : { REFRAIN__ADMIN__TOKEN: "env:DASHBOARD_TOKEN", DASHBOARD_TOKEN: this.token }),
        ...this.environment,
      },
    });
    for (const pipe of [this.process.stdout, this.process.stderr]) pipe.on("data", (text) => (this.log += text));
    await until("the service is ready", async () => {
      if (this.process.exitCode !== null) throw new Error(`the service ended:\n${this.log}`);
      const reply = await fetch(`${this.admin}/readyz`).catch(() => null);
      return reply?.ok;
    });
  }

  async down() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill("SIGTERM");
    await once(this.process, "exit");
  }

  /** Sends a chat request to its end; gives the header `cache-status`. */
  async ask(question, { headers = {}, ...body } = {}) {
    const reply = await fetch(`http://127.0.0.1:${this.callers}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: "default", messages: [{ role: "user", content: question }], ...body }),
    });
    await reply.text();
    return reply.headers.get("cache-status") ?? `${reply.status}`;
  }

  /** Asks the admin API, as an operator without a browser. */
  async operate(path, body) {
    const reply = await fetch(`${this.admin}${path}`, {
      ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
      headers: this.token === null ? {} : { authorization: `Bearer ${this.token}` },
    });
    return reply.json();
  }

  /** Waits until everything answered so far is in the store. */
  written(entries) {
    return until(`${entries} entries in the store`, async () => {
      const { layers, load } = await this.operate("/stats");
      return layers.semantic?.entries === entries && load.write_queue_depth === 0;
    });
  }

  async stop() {
    await this.down();
    await this.dev?.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}
