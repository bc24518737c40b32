// The checks of the OpenAI SDK for Node.js; started by pair.sh, which says where to call. What was
// got, and what the provider received, must be the same on both sides; see openai_python.py.

import OpenAI from "openai";
import {
  ALL, BROKE_KEY, HELLO, LARGE, PIXEL, SHORT_MS, SIDE, checkErrors, checkModels, checkOwn,
  checkSlow, checksOf, differs, digest, textOf,
} from "./checks.mjs";

// Each side asks for scenarios of its own that count requests.
const FIRST = { direct: 5001, through: 6001 }[SIDE];

const TOOL = {
  type: "function",
  function: {
    name: "weather",
    description: "The weather of a place",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  },
};
// What a client says once it has done what two calls asked for.
const GIVEN = [
  {
    role: "assistant",
    content: null,
    tool_calls: ["call_0", "call_1"].map((id) => ({
      id, type: "function", function: { name: "weather", arguments: '{"place":"Zürich"}' },
    })),
  },
  ...["call_0", "call_1"].map((id) => ({ role: "tool", tool_call_id: id, content: "föhn" })),
];

// Its class; its status, if it has one; what the error says, as a body or within a stream.
function ofError(error) {
  const name = error.constructor.name;
  if (!error.error) return name;
  const message = error.error.message ? `message#${digest(error.error.message)}` : "no message";
  return `${name} ${error.status ?? "in the stream"} code=${error.code ?? null} ${message}`;
}

const check = checksOf("openai-node", ofError);
const tokensOf = (usage) => (usage ? `${usage.prompt_tokens}+${usage.completion_tokens}` : null);
const callOf = ({ id, function: called }) => ` ${id} ${called.name}#${digest(called.arguments)}`;
const callsOf = (calls) => calls.map(callOf).join("");

function clientOf({ maxRetries = 0, timeout = 20_000, apiKey } = {}) {
  return new OpenAI({ maxRetries, timeout, ...(apiKey && { apiKey }) });
}

async function chat(model, { messages = HELLO, tools, ...options } = {}) {
  const answer = await clientOf(options).chat.completions.create({ model, messages, tools });
  const { finish_reason: finish, message } = answer.choices[0];
  const calls = callsOf(message.tool_calls ?? []);
  return `${finish} ${textOf(message.content)}${calls} tokens=${tokensOf(answer.usage)}`;
}

async function stream(model, { tools, usage, leaveAfterMs, ...options } = {}) {
  const asked = { model, messages: HELLO, tools, stream: true };
  if (usage) asked.stream_options = { include_usage: true };
  const signal = leaveAfterMs && AbortSignal.timeout(leaveAfterMs);
  const chunks = await clientOf(options).chat.completions.create(asked, { signal });
  let [count, text, finish, tokens] = [0, "", null, null];
  const calls = [];
  for await (const chunk of chunks) {
    count += 1;
    tokens = chunk.usage ?? tokens;
    for (const { delta, finish_reason: reason } of chunk.choices) {
      text += delta.content ?? "";
      finish = reason ?? finish;
      for (const part of delta.tool_calls ?? []) {
        calls[part.index] ??= { ...part, function: { ...part.function, arguments: "" } };
        calls[part.index].function.arguments += part.function.arguments ?? "";
      }
    }
  }
  const seen = `${finish} ${textOf(text)} chunks=${count}${callsOf(calls)}`;
  return `${seen} tokens=${tokensOf(tokens)}${signal?.aborted ? " left" : ""}`;
}

async function answers() {
  const whole = "stop text=* tokens=512+64 x1 up=*";
  const image = [
    { type: "text", text: "What is this?" },
    { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
  ];
  await check("whole call", whole, () => chat("ok"));
  await check("image in base64", whole, () =>
    chat("ok", { messages: [{ role: "user", content: image }] }));
  await check("body of 400 KB", whole, () =>
    chat("ok", { messages: [{ role: "user", content: LARGE }] }));
  await check("20 calls at once", "stop text=* tokens=512+64 x20 up=*", async () => {
    const calls = Array.from({ length: 20 }, () => chat("slow-50"));
    return [...new Set(await Promise.all(calls))].join(", ");
  });
  await checkModels(check, clientOf());
}

async function tools() {
  const one = "call_standin look_up#*";
  const two = `${one} call_standin_1 look_up#*`;
  const asked = { tools: [TOOL] };
  for (const [name, model, calls] of [
    ["tool call", "stream-tools", one],
    ["two tool calls", "stream-tools-2", two],
  ]) {
    await check(name, `tool_calls text=* ${calls} tokens=512+64 x1 up=*`, () => chat(model, asked));
    await check(`stream: ${name}`, `tool_calls text=* chunks=* ${calls} tokens=null x1`,
      () => stream(model, asked), { numbered: true });
  }
  await check("result of a tool", "stop text=* tokens=512+64 x1 up=*", () =>
    chat("ok", { messages: [...HELLO, ...GIVEN], ...asked }));
}

const TOLD = {
  400: "BadRequestError 400 code=invalid_value",
  401: "AuthenticationError 401 code=invalid_api_key",
  402: "APIError 402 code=insufficient_funds",
  403: "PermissionDeniedError 403 code=model_not_found",
  404: "NotFoundError 404 code=model_not_found",
  408: "APIError 408 code=request_timeout",
  409: "ConflictError 409 code=conflict",
  413: "APIError 413 code=request_too_large",
  429: "RateLimitError 429 code=rate_limit_exceeded",
  500: "InternalServerError 500 code=null",
  503: "InternalServerError 503 code=overloaded",
  529: "InternalServerError 529 code=null",
};

async function errors() {
  const retried = { maxRetries: 2 };
  await checkErrors(check, TOLD, "InternalServerError 502 code=upstream_auth", chat);
  await check("429, then ok", "stop text=* tokens=512+64 x2",
    () => chat(`s429-first-${FIRST}`, retried), { numbered: true });
  await check("503 to a stream", `${TOLD[503]} message#* x3`, () => stream("s503", retried),
    { numbered: true });
}

async function broken() {
  const hang = (maxRetries) => () => chat("hang", { maxRetries, timeout: SHORT_MS });
  await check("stall, timeout", "APIConnectionTimeoutError x1 up=*", hang(0));
  await check("stall, timeout, one retry", "APIConnectionTimeoutError x2 up=*", hang(1));
  const named = "InternalServerError 502 code=upstream_cut message#*";
  await check("cut body", differs("told", "TypeError x1 up=*", `${named} x3 up=*`),
    () => chat("cut-body", { maxRetries: 2 }));
  await check("cut body of 1 MiB", "TypeError x1 up=*", () => chat("cut-big", { maxRetries: 2 }));
}

async function streams() {
  const whole = "stop text=* chunks=* tokens=null x1";
  await check("stream", whole, () => stream("ok"), { numbered: true });
  const told = "stop text=* chunks=* tokens=512+64 x1 up=*";
  await check("stream that asks for usage", told, () => stream("ok", { usage: true }));
  await check("stream with comments", whole, () => stream("stream-ping"), { numbered: true });
  await check("stream of one byte a write", "stop other text * chunks=* tokens=null x1",
    () => stream("stream-utf8"), { numbered: true });
  const retried = { maxRetries: 2 };
  const named = "APIError in the stream code=upstream_cut message#* x1";
  const cut = differs("told", "TypeError x1", named);
  for (const [name, model] of [
    ["cut stream", "stream-cut-3"],
    ["reset stream", "stream-rst-3"],
    ["stream cut inside an event", "stream-cut-in-event"],
  ]) {
    await check(name, cut, () => stream(model, retried), { numbered: true });
  }
  const ended = differs("told", "null text=* chunks=* tokens=null x1", named);
  await check("stream without its end", ended, () => stream("stream-trunc", retried),
    { numbered: true });
  const middle = "APIError in the stream code=server_error message#* x1";
  await check("error within a stream", middle, () => stream("stream-err-mid", retried),
    { numbered: true });
  const first = differs("status", "APIError in the stream code=rate_limit_exceeded message#* x1",
    "RateLimitError 429 code=rate_limit_exceeded message#* x1");
  await check("error as the first event", first, () => stream("stream-err-rate"),
    { numbered: true });
  // Its timeout ends with the head: a silence is waited out, and a stall until the program leaves.
  await check("silent stream, timeout", whole,
    () => stream("stream-gap-ms-3000", { timeout: SHORT_MS }), { numbered: true });
  await check("stalled stream, left", "null text=* chunks=* tokens=null left x1",
    () => stream("stream-stall", { leaveAfterMs: SHORT_MS }), { numbered: true });
}

const ownErrors = () => checkOwn(check, [
  ["wrong key", TOLD[401], () => chat("ok", { apiKey: "wrong" })],
  ["spent budget", "APIError 402 code=budget_exceeded",
    () => chat("ok", { maxRetries: 2, apiKey: BROKE_KEY })],
  ["unknown model", TOLD[404], () => chat("nobody-serves-this", { maxRetries: 2 })],
]);

await answers();
await tools();
await errors();
await broken();
await streams();
await ownErrors();
if (ALL) await checkSlow(check, TOLD[429], "stop text=* tokens=512+64", chat);
process.exit(0);
