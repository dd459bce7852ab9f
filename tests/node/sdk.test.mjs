// The SDKs of OpenAI and Anthropic ask through Refrain as they would ask their vendors, whoever answers.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, beforeEach, describe, test } from "node:test";

import { Service, until } from "../dashboard/service.mjs";
import { USAGE, answerTo, provider } from "./provider.mjs";
import { Anthropic, OpenAI } from "./sdks.mjs";

const QUESTION = "How do I reset my password?";
const PARAPHRASE = "How can I reset my password?";
const RAIN = "Is it raining in Basel?";
const TOOL = { id: "toolu_1", name: "weather", input: { city: "Basel" } };
/** Enough for a test that hangs to fail by itself; none comes near it. */
const PATIENCE = { timeout: 300_000 };

let fake, service, url;

before(async () => {
  fake = await provider();
  // In forward mode a caller's key is a tenant of its own, which keeps the tests apart. Refrain does not try again,
  // so that it is the SDK where something is.
  service = await Service.start({
    token: null,
    config: `
      auth.mode = "forward"
      upstream.retry.per_target = 1
      providers.chat = { kind = "openai", url = "${fake.url}" }
      providers.claude = { kind = "anthropic", url = "${fake.url}" }
      models.default.targets = [{ provider = "chat", model = "fake-chat" }]
      models."claude-*".targets = [{ provider = "claude", model = "fake-claude" }]
    `,
  });
  url = `http://127.0.0.1:${service.callers}`;
}, PATIENCE);

after(async () => {
  await service.down();
  await fake.close();
  assert.equal(service.process.exitCode, 0, service.log);
  assert.doesNotMatch(service.log, /panicked/);
  await service.stop();
}, PATIENCE);

/** Waits until the store, not only the memory, has the answer of this miss. */
const stored = (headers) => until("the write-back", async () => {
  const { entries } = await service.operate("/admin/entries?limit=500");
  return entries.some(({ id }) => id === headers.get("x-refrain-entry"));
});

/** What `fails` is rejected with, which must be of the class that the SDK has under this name. */
async function rejection(fails, lib, name) {
  const error = await fails.then(() => assert.fail("it was answered"), (error) => error);
  assert(error instanceof lib[name], `${error.stack} is no ${name}`);
  return error;
}

for (const [sdk, vendor, model, served] of [
  [OpenAI, "OpenAI's SDK, served by OpenAI", "default", "fake-chat"],
  [OpenAI, "OpenAI's SDK, served by Anthropic", "claude-any", "fake-claude"],
  [Anthropic, "Anthropic's SDK, served by Anthropic", "claude-any", "fake-claude"],
  [Anthropic, "Anthropic's SDK, served by OpenAI", "default", "fake-chat"],
]) {
  describe(vendor, PATIENCE, () => {
    let desk, client, impatient;
    const ask = (question, options, by = client) => sdk.ask(by, model, question, options);
    const rejected = (fails, name) => rejection(fails, sdk.lib, name);

    beforeEach(() => {
      desk = fake.desk();
      client = sdk.client(url, desk.key);
      impatient = client.withOptions({ maxRetries: 0 });
    });

    test("the same request again is an exact hit", async () => {
      const { data: miss, response: { headers: before } } = await ask(QUESTION).withResponse();
      const { data: hit, response: { headers } } = await ask(QUESTION).withResponse();
      const { text, end, usage } = sdk.essence(miss);
      assert.deepEqual([text, end, usage], [answerTo(QUESTION), sdk.ends.text, [USAGE.read, USAGE.written]]);
      assert.deepEqual(sdk.essence(hit), sdk.essence(miss));
      assert.notEqual(hit.id, miss.id);
      assert.equal(before.get("cache-status"), "refrain; fwd=miss; stored");
      assert.match(headers.get("cache-status"), /^refrain; hit; .*; detail=exact$/);
      assert.equal(headers.get("x-refrain-entry"), before.get("x-refrain-entry"));
      assert.equal(desk.calls.length, 1);
      const [{ path, body }] = desk.calls;
      assert.equal(path, served === "fake-claude" ? "/v1/messages" : "/v1/chat/completions");
      assert.equal(body.model, served);
      assert.deepEqual(body.messages, [{ role: "user", content: QUESTION }]);
    });

    test("the same question in other words is a semantic hit", async () => {
      const { data: miss, response } = await ask(QUESTION).withResponse();
      await stored(response.headers);
      const { data: hit, response: { headers } } = await ask(PARAPHRASE).withResponse();
      assert.match(headers.get("cache-status"), /^refrain; hit; .*; detail=semantic$/);
      assert.deepEqual(sdk.essence(hit), sdk.essence(miss));
      assert.equal(desk.calls.length, 1);
    });

    test("streams of a miss and of a hit look alike, and serve a whole answer", async () => {
      const streamed = async () => {
        const stream = sdk.stream(client, model, QUESTION);
        const kinds = [];
        for await (const event of stream) if (sdk.kind(event) !== kinds.at(-1)) kinds.push(sdk.kind(event));
        return { kinds, answer: await sdk.final(stream) };
      };
      const [miss, hit] = [await streamed(), await streamed()];
      assert.equal(sdk.essence(miss.answer).text, answerTo(QUESTION));
      assert.deepEqual(sdk.essence(hit.answer), sdk.essence(miss.answer));
      assert.deepEqual(hit.kinds, miss.kinds);
      assert.notEqual(hit.answer.id, miss.answer.id);
      assert.deepEqual(sdk.essence(await ask(QUESTION)), sdk.essence(miss.answer));
      assert.equal(desk.calls.length, 1);
    });

    for (const streams of [false, true]) {
      test(`tool calls pass and are not kept, ${streams ? "streamed" : "whole"}`, async () => {
        desk.respond = (call) => call.use(TOOL);
        const { tools } = sdk;
        for (const count of [1, 2]) {
          const answer = await (streams ? sdk.final(sdk.stream(client, model, RAIN, { tools })) : ask(RAIN, { tools }));
          assert.deepEqual([sdk.essence(answer).tool, sdk.essence(answer).end], [TOOL, sdk.ends.tool]);
          assert.equal(desk.calls.length, count);
        }
        const [{ name, function: described }] = desk.calls[0].body.tools;
        assert.equal(name ?? described.name, "weather");
      });

      for (const [status, name] of [[400, "BadRequestError"], [401, "AuthenticationError"], [404, "NotFoundError"]]) {
        test(`a ${status} arrives as ${name} and is final, ${streams ? "streamed" : "whole"}`, async () => {
          desk.respond = (call) => call.refuse(status, "the provider's own words");
          const error = await rejected(streams ? sdk.events(client, model, QUESTION) : ask(QUESTION), name);
          assert.deepEqual([error.status, sdk.told(error)], [status, "the provider's own words"]);
          assert.equal(desk.calls.length, 1);
        });
      }
    }

    test("the SDK's helper runs a tool, and its result goes on", async () => {
      desk.respond = (call) => (desk.calls.length === 1 ? call.use(TOOL) : call.whole("Yes."));
      const inputs = [];
      const answer = await sdk.run(client, model, RAIN, (input) => inputs.push(input) && "rain");
      assert.deepEqual([answer, inputs, desk.calls.length], ["Yes.", [TOOL.input], 2]);
      const result = desk.calls[1].body.messages.at(-1);
      const { tool_call_id = result.content[0].tool_use_id } = result;
      assert.equal(tool_call_id, TOOL.id);
      assert.match(JSON.stringify(result.content), /rain/);
    });

    test("Refrain's own refusal is in the SDK's words", async () => {
      const error = await rejected(ask(QUESTION, { headers: { "x-refrain-ttl": "soon" } }), "BadRequestError");
      assert.match(sdk.told(error), /x-refrain-ttl/);
      assert.equal(error.type, "invalid_request_error");
      assert.equal(desk.calls.length, 0);
    });

    test("a rate limit passes with its retry-after", async () => {
      desk.respond = (call) => call.refuse(429, "secret detail", { "retry-after": "7" });
      const error = await rejected(ask(QUESTION, {}, impatient), "RateLimitError");
      assert.equal(error.headers.get("retry-after"), "7");
      assert.doesNotMatch(error.message, /secret/);
    });

    test("the SDK outlasts a rate limit", async () => {
      const later = { "retry-after": "1" };
      desk.respond = (call) => (desk.calls.length === 1 ? call.refuse(429, "later", later) : call.whole("now"));
      const statuses = [];
      const watched = client.withOptions({
        fetch: async (...request) => {
          const response = await fetch(...request);
          statuses.push(response.status);
          return response;
        },
      });
      assert.equal(sdk.essence(await ask(QUESTION, {}, watched)).text, "now");
      assert.deepEqual([statuses, desk.calls.length], [[429, 200], 2]);
    });

    test("an overload says when to come again, and is not kept", async () => {
      const { respond } = desk;
      desk.respond = (call) => call.refuse(served === "fake-claude" ? 529 : 503, "secret detail");
      const error = await rejected(ask(QUESTION, {}, impatient), "InternalServerError");
      const { status, headers } = error;
      assert.deepEqual([status, headers.get("retry-after"), headers.get("x-should-retry")], [503, "5", null]);
      assert.doesNotMatch(error.message, /secret/);
      desk.respond = respond;
      assert.equal(sdk.essence(await ask(QUESTION)).text, answerTo(QUESTION));
    });

    for (const [how, stop] of [
      ["breaks off", (call) => call.breakOff()],
      ["ends too soon", (call) => call.reply.end()],
    ]) {
      test(`a stream that ${how} raises and is not kept`, async () => {
        const { respond } = desk;
        desk.respond = (call) => {
          call.begin();
          call.say("Half of ", "the ans");
          stop(call);
        };
        let heard = "";
        const reading = async () => {
          for await (const event of await sdk.events(client, model, QUESTION)) heard += sdk.text(event);
        };
        await rejected(reading(), "APIError");
        assert.equal(heard, "Half of the ans");
        desk.respond = respond;
        const { response } = await ask(QUESTION).withResponse();
        assert.equal(response.headers.get("cache-status"), "refrain; fwd=miss; stored");
        assert.equal(desk.calls.length, 2);
      });
    }

    test("who aborts lets the provider go", async () => {
      desk.respond = () => {};
      const called = once(desk, "call");
      const abort = new AbortController();
      const failed = rejected(ask(QUESTION, { signal: abort.signal }), "APIUserAbortError");
      const [call] = await called;
      abort.abort();
      await failed;
      await call.left;
    });

    for (const [what, options, name] of [
      ["the SDK's own timeout lets the provider go", { timeout: 500 }, "APIConnectionTimeoutError"],
      ["a deadline is a 504 and final", { headers: { "x-refrain-deadline": "500ms" } }, "InternalServerError"],
    ]) {
      test(what, async () => {
        desk.respond = () => {};
        const by = options.timeout ? impatient : client;
        const { status } = await rejected(ask(QUESTION, options, by), name);
        assert.equal(status, options.timeout ? undefined : 504);
        // On a very busy machine the time may be over before anybody was asked.
        assert(desk.calls.length <= 1);
        await desk.calls[0]?.left;
      });
    }

    test("who leaves a stream lets the provider go", async () => {
      desk.respond = (call) => {
        call.begin();
        call.say("and so on, ");
      };
      for await (const event of await sdk.events(client, model, QUESTION)) if (sdk.text(event)) break;
      await desk.calls[0].left;
    });

    test("the models are listed", async () => {
      const ids = [];
      for await (const { id } of client.models.list()) ids.push(id);
      assert(ids.includes("default"), ids);
    });
  });
}

test("one stored answer serves both SDKs", PATIENCE, async () => {
  const desk = fake.desk();
  await Anthropic.ask(Anthropic.client(url, desk.key), "default", QUESTION);
  const { data, response } = await OpenAI.ask(OpenAI.client(url, desk.key), "default", QUESTION).withResponse();
  assert.match(response.headers.get("cache-status"), /; detail=exact$/);
  assert.equal(OpenAI.essence(data).text, answerTo(QUESTION));
  assert.equal(desk.calls.length, 1);
});

test("a thread goes on from an answer of the provider's, and only once", PATIENCE, async () => {
  const desk = fake.desk();
  const client = Anthropic.client(url, desk.key);
  for (const question of [QUESTION, QUESTION]) {
    const thread = client.beta.messages.thread({ model: "claude-any", max_tokens: 100 });
    for (const content of [question, "And then?"]) await thread.send({ role: "user", content });
  }
  const given = new Set(desk.calls.map(({ id }) => id));
  const continued = desk.calls.map(({ body }) => body.thread.previous_message_id).filter(Boolean);
  assert.deepEqual(continued.filter((id) => !given.delete(id)), []);
});
