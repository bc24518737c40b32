// The checks of the Anthropic SDK for Node.js; started by pair.sh, which says where to call. What
// was got, and what the provider received, must be the same on both sides.

import Anthropic from "@anthropic-ai/sdk";
import {
  ALL, BROKE_KEY, HELLO, LARGE, PIXEL, SHORT_MS, SIDE, TRIES, checkErrors, checkModels, checkOwn,
  checkSlow, checksOf, differs, digest, textOf,
} from "./checks.mjs";

// Each side asks for scenarios of its own that count requests.
const FIRST = { direct: 7001, through: 8001 }[SIDE];
const MODEL = "claude-haiku-4-5";

const TOOL = {
  name: "look_up",
  description: "Looks a place up",
  input_schema: {
    type: "object", properties: { place: { type: "string" } }, required: ["place"],
  },
};
// What a client says once it has done what two calls asked for.
const GIVEN = [
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "Two places.", signature: "c2lnbmVk" },
      ...["toolu_0", "toolu_1"].map((id) => ({
        type: "tool_use", id, name: "look_up", input: { place: "Zürich" },
      })),
    ],
  },
  {
    role: "user",
    content: ["toolu_0", "toolu_1"].map((id) => ({
      type: "tool_result", tool_use_id: id, content: "föhn", is_error: id === "toolu_1",
    })),
  },
];
const IMAGE = [{
  role: "user",
  content: [
    { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
    { type: "text", text: "What is this?" },
  ],
}];

function ofMessage(message) {
  const text = message.content.map((block) => block.text ?? "").join("");
  const calls = message.content
    .filter((block) => block.type === "tool_use")
    .map((block) => ` ${block.id} ${block.name}#${digest(JSON.stringify(block.input))}`);
  const { usage } = message;
  const tokens = usage ? `${usage.input_tokens}+${usage.output_tokens}` : null;
  return `${message.stop_reason} ${textOf(text)}${calls.join("")} tokens=${tokens}`;
}

function ofError(error) {
  const name = error.constructor.name;
  const said = error.error?.error;
  if (!said) return name;
  const message = said.message ? `message#${digest(said.message)}` : "no message";
  return `${name} ${error.status ?? "in the stream"} type=${said.type} ${message}`;
}

const check = checksOf("anthropic-node", ofError);

function clientOf({ maxRetries = 0, timeout = 20_000, key } = {}) {
  return new Anthropic({ maxRetries, timeout, apiKey: null, ...(key && { authToken: key }) });
}

const asked = (model, { messages = HELLO, tools }) => ({ model, max_tokens: 100, messages, tools });

async function create(model, options = {}) {
  return ofMessage(await clientOf(options).messages.create(asked(model, options)));
}

async function stream(model, options = {}) {
  const signal = options.leaveAfterMs && AbortSignal.timeout(options.leaveAfterMs);
  const events = clientOf(options).messages.stream(asked(model, options), { signal });
  return ofMessage(await events.finalMessage());
}

async function count() {
  const counted = await clientOf().messages.countTokens({ model: MODEL, messages: HELLO });
  return `${counted.input_tokens} tokens`;
}

async function answers() {
  const whole = "end_turn text=* tokens=512+64 x1 up=*";
  await check("whole message", whole, () => create(MODEL));
  await check("image in base64", whole, () => create(MODEL, { messages: IMAGE }));
  const large = [{ role: "user", content: LARGE }];
  await check("body of 400 KB", whole, () => create(MODEL, { messages: large }));
  await check("stream", whole, () => stream(MODEL));
  await check("stream with pings", whole, () => stream("stream-ping"));
  await check("stream of one byte a write", "end_turn other text * tokens=512+64 x1 up=*",
    () => stream("stream-utf8"));
  await check("count of tokens", "512 tokens x1 up=*", count);
  await checkModels(check, clientOf());
}

async function tools() {
  const one = "tool_use text=* toolu_standin look_up#*";
  const two = `${one} toolu_standin_1 look_up#*`;
  const given = { tools: [TOOL] };
  for (const [name, model, calls] of [
    ["tool call", "stream-tools", one],
    ["two tool calls", "stream-tools-2", two],
  ]) {
    const expected = `${calls} tokens=512+64 x1 up=*`;
    await check(name, expected, () => create(model, given));
    await check(`stream: ${name}`, expected, () => stream(model, given));
  }
  await check("result of a tool", "end_turn text=* tokens=512+64 x1 up=*",
    () => create(MODEL, { messages: [...HELLO, ...GIVEN], ...given }));
}

const TOLD = {
  400: "BadRequestError 400 type=invalid_request_error",
  401: "AuthenticationError 401 type=authentication_error",
  402: "PaymentRequiredError 402 type=billing_error",
  403: "PermissionDeniedError 403 type=permission_error",
  404: "NotFoundError 404 type=not_found_error",
  408: "RequestTimeoutError 408 type=invalid_request_error",
  409: "ConflictError 409 type=invalid_request_error",
  413: "ContentTooLargeError 413 type=request_too_large",
  429: "RateLimitError 429 type=rate_limit_error",
  500: "InternalServerError 500 type=api_error",
  503: "ServiceUnavailableError 503 type=overloaded_error",
  529: "OverloadedError 529 type=overloaded_error",
};

async function errors() {
  const retried = { maxRetries: 2 };
  await checkErrors(check, TOLD, "InternalServerError 502 type=api_error", create);
  for (const status of Object.keys(TRIES).filter((status) => TRIES[status] === 1)) {
    await check(`${status} to a stream`, `${TOLD[status]} message#* x1 up=*`,
      () => stream(`s${status}`, retried));
  }
  await check("429, then a stream", "end_turn text=* tokens=512+64 x2",
    () => stream(`s429-first-${FIRST}`, retried), { numbered: true });
}

async function broken() {
  const retried = { maxRetries: 2 };
  await check("stall, timeout", "APIConnectionTimeoutError x1 up=*",
    () => create("hang", { timeout: SHORT_MS }));
  await check("cut body", differs("told", "TypeError x1 up=*",
    "InternalServerError 502 type=api_error message#* x3 up=*"), () => create("cut-body", retried));
  await check("cut body of 1 MiB", "TypeError x1 up=*", () => create("cut-big", retried));
  const named = "APIError in the stream type=api_error message#* x1 up=*";
  const cut = differs("told", "AnthropicError x1 up=*", named);
  await check("cut stream", cut, () => stream("stream-cut-3", retried));
  await check("reset stream", cut, () => stream("stream-rst-3", retried));
  await check("stream cut inside an event", "AnthropicError x1 up=*",
    () => stream("stream-cut-in-event", retried));
  await check("stream without its end", cut, () => stream("stream-trunc", retried));
  await check("error within a stream", named, () => stream("stream-err-mid", retried));
  const first = differs("status", "APIError in the stream type=overloaded_error message#* x1 up=*",
    "OverloadedError 529 type=overloaded_error message#* x1 up=*");
  await check("error as the first event", first, () => stream("stream-err-first"));
  // Its timeout ends with the head: a silence is waited out, and a stall until the program leaves.
  await check("silent stream, timeout", "end_turn text=* tokens=512+64 x1 up=*",
    () => stream("stream-gap-ms-3000", { timeout: SHORT_MS }));
  await check("stalled stream, left", "APIUserAbortError x1 up=*",
    () => stream("stream-stall", { leaveAfterMs: SHORT_MS }));
}

const ownErrors = () => checkOwn(check, [
  ["wrong key", TOLD[401], () => create(MODEL, { key: "wrong" })],
  ["spent budget", "PaymentRequiredError 402 type=*",
    () => create(MODEL, { maxRetries: 2, key: BROKE_KEY })],
  ["unknown model", TOLD[404], () => create("nobody-serves-this", { maxRetries: 2 })],
  ["model of the other dialect", TOLD[400], () => create("fast", { maxRetries: 2 })],
]);

await answers();
await tools();
await errors();
await broken();
await ownErrors();
if (ALL) await checkSlow(check, TOLD[429], "end_turn text=* tokens=512+64", create);
process.exit(0);
