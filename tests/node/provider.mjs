// An LLM provider that says what the test wants, in OpenAI's words or in Anthropic's, as it was asked.
//
// Each API key has a desk of its own: what calls with this key get, and which came. So one provider serves all
// tests, and none sees another's calls.

import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { createServer } from "node:http";

export const USAGE = { read: 11, written: 7 };

/** What a desk answers when nobody told it otherwise. */
export const answerTo = (question) => `The answer to “${question}” — 好的 ✓`;

function answer(call) {
  const words = answerTo(call.body.messages.at(-1).content).match(/\S+\s*/g);
  if (!call.body.stream) return call.whole(words.join(""));
  call.begin();
  call.say(...words);
  call.end();
}

/** Says `call` when one came; `respond(call)` answers it. */
class Desk extends EventEmitter {
  key = `sk-${randomUUID()}`;
  calls = [];
  respond = answer;
}

/** A call of the provider, and the ways to answer it that do not depend on the dialect. */
class Call {
  constructor(request, reply, body) {
    Object.assign(this, { path: request.url, headers: request.headers, body, reply });
    /** Settles when the caller goes away while it is owed more. */
    this.left = new Promise((left) => reply.once("close", () => reply.writableFinished || left()));
  }

  json(status, value, headers = {}) {
    this.reply.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
  }

  begin() {
    this.reply.writeHead(200, { "content-type": "text/event-stream" });
  }

  event(data, name) {
    this.reply.write(`${name ? `event: ${name}\n` : ""}data: ${JSON.stringify(data)}\n\n`);
  }

  /** Ends the connection in the middle of the answer; what was said before has gone out by then. */
  breakOff() {
    this.reply.write(": so far\n\n", () => this.reply.destroy());
  }
}

class ChatCall extends Call {
  #head = { id: `chatcmpl-${randomUUID()}`, created: 1_800_000_000, model: this.body.model };
  #usage = { prompt_tokens: USAGE.read, completion_tokens: USAGE.written, total_tokens: USAGE.read + USAGE.written };

  #message(message, finish_reason) {
    const choices = [{ index: 0, message: { role: "assistant", ...message }, finish_reason }];
    this.json(200, { ...this.#head, object: "chat.completion", choices, usage: this.#usage });
  }

  #chunk(choices, more = {}) {
    this.event({ ...this.#head, object: "chat.completion.chunk", choices, ...more });
  }

  #delta(delta, finish_reason = null) {
    this.#chunk([{ index: 0, delta, finish_reason }]);
  }

  whole(content) {
    this.#message({ content }, "stop");
  }

  refuse(status, message, headers) {
    this.json(status, { error: { message, type: "refused", param: null, code: null } }, headers);
  }

  begin() {
    super.begin();
    this.#delta({ role: "assistant", content: "" });
  }

  say(...texts) {
    for (const content of texts) this.#delta({ content });
  }

  end(finish = "stop") {
    this.#delta({}, finish);
    if (this.body.stream_options?.include_usage) this.#chunk([], { usage: this.#usage });
    this.reply.end("data: [DONE]\n\n");
  }

  use({ id, name, input }) {
    const call = { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
    if (!this.body.stream) return this.#message({ content: null, tool_calls: [call] }, "tool_calls");
    this.begin();
    const [first, ...others] = call.function.arguments.match(/.{1,6}/g);
    this.#delta({ tool_calls: [{ index: 0, ...call, function: { name, arguments: first } }] });
    for (const part of others) this.#delta({ tool_calls: [{ index: 0, function: { arguments: part } }] });
    this.end("tool_calls");
  }
}

class MessagesCall extends Call {
  id = `msg_${randomUUID()}`;

  #message(content, stop_reason, output_tokens) {
    const head = { id: this.id, type: "message", role: "assistant", model: this.body.model };
    return { ...head, content, stop_reason, stop_sequence: null, usage: { input_tokens: USAGE.read, output_tokens } };
  }

  #say(type, fields) {
    this.event({ type, ...fields }, type);
  }

  #block(content_block, deltas) {
    this.#say("content_block_start", { index: 0, content_block });
    for (const delta of deltas) this.#say("content_block_delta", { index: 0, delta });
    this.#say("content_block_stop", { index: 0 });
  }

  whole(text) {
    this.json(200, this.#message([{ type: "text", text }], "end_turn", USAGE.written));
  }

  refuse(status, message, headers) {
    const types = { 401: "authentication", 404: "not_found", 429: "rate_limit", 529: "overloaded" };
    const type = `${types[status] ?? "invalid_request"}_error`;
    this.json(status, { type: "error", error: { type, message } }, headers);
  }

  begin() {
    super.begin();
    this.#say("message_start", { message: this.#message([], null, 1) });
    this.#say("ping");
  }

  say(...texts) {
    this.#block({ type: "text", text: "" }, texts.map((text) => ({ type: "text_delta", text })));
  }

  end(stop_reason = "end_turn") {
    this.#say("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: USAGE.written } });
    this.#say("message_stop");
    this.reply.end();
  }

  use(tool) {
    const block = { type: "tool_use", ...tool };
    if (!this.body.stream) return this.json(200, this.#message([block], "tool_use", USAGE.written));
    this.begin();
    const parts = JSON.stringify(tool.input).match(/.{1,6}/g);
    this.#block({ ...block, input: {} }, parts.map((partial_json) => ({ type: "input_json_delta", partial_json })));
    this.end("tool_use");
  }
}

/** Listens on a free port. Gives `{ url, desk(), close() }`. */
export async function provider() {
  const desks = new Map();
  const server = createServer(async (request, reply) => {
    const pieces = await request.toArray();
    const key = request.headers["x-api-key"] ?? request.headers.authorization?.replace("Bearer ", "");
    const Kind = request.url.includes("/messages") ? MessagesCall : ChatCall;
    const call = new Kind(request, reply, JSON.parse(Buffer.concat(pieces)));
    const desk = desks.get(key);
    desk.calls.push(call);
    desk.respond(call);
    desk.emit("call", call);
  });
  // A connection is never closed under the next call on it.
  server.keepAliveTimeout = 0;
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    desk() {
      const desk = new Desk();
      desks.set(desk.key, desk);
      return desk;
    },
    close: () => new Promise((closed) => {
      server.closeAllConnections();
      server.close(closed);
    }),
  };
}
