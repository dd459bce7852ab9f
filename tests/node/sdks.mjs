// The two SDKs behind one face, for what both must do alike: ask, and say what came.

import * as anthropic from "@anthropic-ai/sdk";
import * as openai from "openai";

// What the environment of whoever runs the tests must not decide.
for (const name of Object.keys(process.env)) if (/^(OPENAI|ANTHROPIC)_/.test(name)) delete process.env[name];

const PARAMETERS = { type: "object", properties: { city: { type: "string" } } };

/** A conversation of one question, and the tool it may use. */
const asked = (model, content) => ({ model, max_tokens: 100, messages: [{ role: "user", content }] });

export const OpenAI = {
  /** The module, whose classes of errors have the same names as the other's. */
  lib: openai,
  client: (service, key) => new openai.OpenAI({ baseURL: `${service}/v1`, apiKey: key }),
  tools: [{ type: "function", function: { name: "weather", parameters: PARAMETERS } }],

  /** Asks for a whole answer. */
  ask: (client, model, question, { tools, ...options } = {}) =>
    client.chat.completions.create({ ...asked(model, question), tools }, options),

  /** Has the SDK's helper call the tool and tell the model what it said; gives the answer after it. */
  run: (client, model, question, weather) => {
    const tool = { name: "weather", parameters: PARAMETERS, parse: JSON.parse, function: weather };
    const tools = [{ type: "function", function: tool }];
    return client.chat.completions.runTools({ ...asked(model, question), tools }).finalContent();
  },

  /** Asks for a stream, as the SDK's helper that puts the answer together. */
  stream: (client, model, question, { tools, ...options } = {}) =>
    client.chat.completions.stream({ ...asked(model, question), tools, stream_options: { include_usage: true } }, options),
  final: (stream) => stream.finalChatCompletion(),

  /** Asks for a stream as it comes. */
  events: (client, model, question, options) =>
    client.chat.completions.create({ ...asked(model, question), stream: true }, options),
  text: (event) => event.choices[0]?.delta.content ?? "",
  kind: ({ choices: [choice], usage }) =>
    choice ? (choice.finish_reason ?? (choice.delta.content ? "content" : "role")) : usage && "usage",

  /** What an answer says, without what differs from one to the next. */
  essence({ model, choices: [{ message, finish_reason }], usage }) {
    const [tool] = message.tool_calls ?? [];
    return {
      model,
      text: message.content,
      end: finish_reason,
      usage: [usage.prompt_tokens, usage.completion_tokens],
      tool: tool && { id: tool.id, name: tool.function.name, input: JSON.parse(tool.function.arguments) },
    };
  },
  ends: { text: "stop", tool: "tool_calls" },
  /** The provider's words in an error. */
  told: (error) => error.error.message,
};

export const Anthropic = {
  lib: anthropic,
  client: (service, key) => new anthropic.Anthropic({ baseURL: service, apiKey: key }),
  tools: [{ name: "weather", input_schema: PARAMETERS }],

  ask: (client, model, question, { tools, ...options } = {}) =>
    client.messages.create({ ...asked(model, question), tools }, options),

  async run(client, model, question, weather) {
    const tools = [{ ...this.tools[0], run: weather, parse: (input) => input }];
    return (await client.beta.messages.toolRunner({ ...asked(model, question), tools })).content[0].text;
  },

  stream: (client, model, question, { tools, ...options } = {}) =>
    client.messages.stream({ ...asked(model, question), tools }, options),
  final: (stream) => stream.finalMessage(),

  events: (client, model, question, options) =>
    client.messages.create({ ...asked(model, question), stream: true }, options),
  text: (event) => event.delta?.text ?? "",
  kind: ({ type }) => type,

  essence({ model, content: [block], stop_reason, usage }) {
    const { type, text = null, id, name, input } = block;
    return {
      model,
      text,
      end: stop_reason,
      usage: [usage.input_tokens, usage.output_tokens],
      tool: type === "tool_use" ? { id, name, input } : undefined,
    };
  },
  ends: { text: "end_turn", tool: "tool_use" },
  told: (error) => error.error.error.message,
};
