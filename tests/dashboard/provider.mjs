// A provider of OpenAI's chat API that does as the test says, model by model and key by key.

import { createServer } from "node:http";

/**
 * `behave({ model, key, question })` gives `{ status, delay }`: what to answer, and how many milliseconds the
 * first content takes. Gives `{ url, close() }`.
 */
export async function provider(behave) {
  const server = createServer((asked, reply) => {
    let text = "";
    asked.on("data", (piece) => (text += piece));
    asked.on("end", () => {
      const { model, messages, stream } = JSON.parse(text);
      const key = asked.headers.authorization?.replace("Bearer ", "");
      const { status = 200, delay = 0 } = behave({ model, key, question: messages.at(-1).content }) ?? {};
      setTimeout(() => (status === 200 ? answer(reply, model, stream) : refuse(reply, status)), delay);
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    close: () => new Promise((closed) => {
      server.closeAllConnections();
      server.close(closed);
    }),
  };
}

const usage = { prompt_tokens: 120, completion_tokens: 380, total_tokens: 500 };
const content = "Open the settings, and choose it there.";

function answer(reply, model, stream) {
  const common = { id: "chatcmpl-1", created: 1, model };
  if (!stream) {
    reply.writeHead(200, { "content-type": "application/json" });
    const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
    return reply.end(JSON.stringify({ ...common, object: "chat.completion", choices, usage }));
  }
  reply.writeHead(200, { "content-type": "text/event-stream" });
  const event = (delta, finish_reason = null) =>
    reply.write(`data: ${JSON.stringify({ ...common, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
  event({ role: "assistant", content });
  event({}, "stop");
  reply.write(`data: ${JSON.stringify({ ...common, object: "chat.completion.chunk", choices: [], usage })}\n\n`);
  reply.end("data: [DONE]\n\n");
}

function refuse(reply, status) {
  const code = { 401: "invalid_api_key", 429: "rate_limit_exceeded" }[status] ?? "server_error";
  reply.writeHead(status, { "content-type": "application/json", ...(status === 429 ? { "retry-after": "40" } : {}) });
  reply.end(JSON.stringify({ error: { message: "no", type: code, code } }));
}
