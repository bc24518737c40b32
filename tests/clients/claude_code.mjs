// The checks of Claude Code in print mode; started by pair.sh, which says where to call:
// claude_code.mjs PROGRAM. It has a home of its own in a temporary folder, and nothing of the
// environment but what is said here; what is no call of a model is switched off.
//
// What was got names how the program ended, what it said, and every request that reached the
// provider: whether for a stream, its status, and the length of the first one's body (by itself
// Claude Code does not write later ones of one length every time). How often it tries again is
// limited to twice, since by itself it goes on for minutes.

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { LARGE, PIXEL, SIDE, clearTally, differs, digest, say, tally } from "./checks.mjs";

const [, , program] = process.argv;
const { ANTHROPIC_BASE_URL, ANTHROPIC_AUTH_TOKEN, BUDGET_KEY, CONFIG, FOLDER, TOLLGATE_BINARY } =
  process.env;
const MODEL = "claude-haiku-4-5";
// Each side asks for scenarios of its own that count requests.
const FIRST = { direct: 1001, through: 2001 }[SIDE];
// Names of one length: the folder's is within every prompt.
const home = join(FOLDER, { direct: "claude-a", through: "claude-b" }[SIDE]);
// One run, retries and all: far above what any takes.
const RUN_LIMIT_MS = 100_000;

function run(file, given, { env, input = "" }) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, given, { cwd: join(home, "work"), env, timeout: RUN_LIMIT_MS });
    let [out, faults] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (part) => (out += part));
    child.stderr.setEncoding("utf8").on("data", (part) => (faults += part));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, faults }));
    // A program that has ended does not read what it is still given.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
}

function claude(model, { prompt = "Say hello", key, given = [], more = {}, input } = {}) {
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    CLAUDE_CONFIG_DIR: join(home, "config"),
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    CLAUDE_CODE_MAX_RETRIES: "2",
    NO_PROXY: "*",
    ANTHROPIC_BASE_URL,
    ANTHROPIC_AUTH_TOKEN: key ?? ANTHROPIC_AUTH_TOKEN,
    ...more,
  };
  const words = input ? [] : [prompt];
  const form = given.includes("--output-format") ? [] : ["--output-format", "json"];
  return run(program, ["-p", ...words, "--model", model, ...form, ...given], { env, input });
}

// The object that a run ends with.
function resultOf({ out, faults }) {
  const last = out.trim().split("\n").pop();
  try {
    return JSON.parse(last);
  } catch {
    return { result: `no result: ${last} ${faults}`.slice(0, 300) };
  }
}

// What it says, without the address and the advice that Claude Code adds to some errors.
const saidOf = ({ result = "" }) => result.replace(/ This is a server-side issue.*/s, "");

async function requests() {
  const entries = await tally();
  const shown = entries.map((entry, n) => {
    const path = entry.path.replace(/\?.*/, "").split("/").pop();
    const form = path === "messages" ? (entry.stream ? "stream" : "whole") : path;
    return `${form}:${entry.status}${n === 0 ? `:${entry.body_bytes}` : ""}`;
  });
  return `x${entries.length} ${shown.join(" ")}`.trim();
}

async function check(name, expected, call, { only } = {}) {
  if (only && only !== SIDE) return;
  await clearTally();
  const got = await call();
  say("claude-code", name, typeof expected === "string" ? { expected } : expected, got);
}

// A run to its end: exit code, turns, what was said, what was asked.
async function told(model, options = {}) {
  const ended = await claude(model, options);
  const result = resultOf(ended);
  const text = saidOf(result);
  const words = /^The toll is counted/.test(text) ? `words=${text.length}` : text;
  return `exit ${ended.code} turns=${result.num_turns} ${words} ${await requests()}`;
}

const numbered = { count: 0 };
const next = (scenario) => `${scenario}-${FIRST + numbered.count++}`;

async function answers() {
  const once = "exit 0 turns=1 words=* x1 stream:200:*";
  await check("stream", once, () => told(MODEL));
  const whole = "exit 0 turns=1 words=* x2 stream:200:* whole:200";
  await check("whole, behind a failed stream", whole, () => told(next("cc-whole")));
  const image = JSON.stringify({
    type: "user",
    message: {
      role: "user",
      content: [
        { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
        { type: "text", text: "What is this?" },
      ],
    },
  });
  const lines = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
  await check("image in base64", once, () => told(MODEL, { given: lines, input: `${image}\n` }));
  await check("body of 400 KB", once.replace(":*", ":*").replace("200:*", "200:5*"), () =>
    told(MODEL, { input: LARGE }));
  await check("two tool calls", "exit 0 turns=3 words=* x2 stream:200:* stream:200", () =>
    told(next("cc-tools"), { given: ["--allowedTools", "Bash"] }));
  await check("silent stream", once, () => told("stream-gap-ms-3000"));
}

async function errors() {
  const times = (count, status) => {
    const again = ` stream:${status}`.repeat(count - 1);
    return `x${count} stream:${status}:*${again}`;
  };
  for (const [status, said, asked] of [
    [400, "API Error: 400 Invalid value*", times(6, 400)],
    [403, "*403 Project does not have access*", times(1, 403)],
    [404, "There's an issue with the selected model*", "x2 stream:404:* whole:404"],
    [408, "*", times(3, 408)],
    [409, "*", times(3, 409)],
    [413, "*", times(1, 413)],
    [500, "API Error: 500 The server had an error*", times(3, 500)],
    [503, "API Error: 503 The engine is currently overloaded*", times(3, 503)],
    [529, "API Error: 529 Overloaded*", times(3, 529)],
  ]) {
    await check(`${status}`, `exit 1 turns=1 ${said} ${asked}`, () => told(`s${status}`));
  }
  // What is wrong with the gateway's credential or account is no fault of the caller's.
  await check("401", differs("credential",
    `exit 1 turns=1 *401 Incorrect API key provided* ${times(3, 401)}`,
    "exit 1 turns=1 API Error: 502 The upstream refused this gateway's credential.* x1 *"),
  () => told("s401"));
  await check("402", differs("account",
    "exit 1 turns=1 API Error: 402 This account has no funds left. x1 stream:402:*",
    "exit 1 turns=1 API Error: 402 The upstream account behind this gateway * x1 stream:402:*"),
  () => told("s402"));
  const limited = "exit 1 turns=1 *";
  await check("429 with Retry-After", `${limited} ${times(3, 429)}`,
    () => told("s429-soon"));
  await check("429 for a day", `${limited} ${times(1, 429)}`, () => told("s429-huge"));
}

async function brokenStreams() {
  const lost = "exit 1 turns=1 *";
  const cut = differs("told", `${lost} x4 *`, `${lost} 502 The upstream broke off * x3 *`);
  await check("cut stream", cut, () => told("stream-cut-3"));
  await check("reset stream", cut, () => told("stream-rst-3"));
  // The whole answer that it asks for at last breaks off too.
  await check("stream cut inside an event", differs("told", `${lost} x4 *`, `${lost} x4 *`),
    () => told("stream-cut-in-event"));
  // It asks to go on where the answer broke off, three times.
  const again = "exit 1 turns=4 * response above may be incomplete. x4 *";
  await check("stream without its end", differs("told", again, again), () => told("stream-trunc"));
  await check("error within a stream", `${lost} x3 stream:200:* whole:500 whole:500`,
    () => told("stream-err-mid"));
  await check("error as the first event", differs("status", `${lost} x4 *`, `${lost} x3 *`),
    () => told("stream-err-first"));
}

// What it offers from then on: of the list whatever has its maker's name in it.
function discovered() {
  const cache = join(home, "config", "cache", "gateway-models.json");
  return JSON.parse(readFileSync(cache, "utf8")).models.map(({ id }) => id).sort().join(" ");
}

async function discovery() {
  const more = { CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1" };
  const asked = "exit 0 turns=1 words=*";
  // The list and the first message are asked for at once, so they come in any order.
  const kept = "keeps claude-haiku-4-5";
  const both = differs("list", `${asked} asks for models, stream ${kept}`,
    `${asked} asks for stream ${kept}`);
  await check("model discovery", both, async () => {
    const [said, asks] = (await told(MODEL, { more })).split(/ x\d /);
    const forms = asks.split(" ").map((request) => request.replace(/:.*/, ""));
    return `${said} asks for ${forms.sort().join(", ")} keeps ${discovered()}`;
  });
  const burst = "exit 0 of a context: all of * counts answered";
  await check("burst of count_tokens", burst, async () => {
    const ended = await claude(MODEL, { prompt: "/context" });
    const result = resultOf(ended);
    const entries = await tally();
    const counts = entries.filter((entry) => entry.path.includes("/count_tokens"));
    const well = counts.length > 10 && counts.every((entry) => entry.status === 200);
    const shown = /## Context Usage/.test(result.result) ? "of a context" : result.result;
    const all = well ? "all" : "not all";
    return `exit ${ended.code} ${shown}: ${all} of ${counts.length} counts answered`;
  });
}

// Its own words about a call, by the id that the client keeps in its transcript.
async function why() {
  const folder = join(home, "config", "projects");
  const ids = readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"))
    .filter((line) => line.includes("has no room for this call"))
    .map((line) => /"requestId":"(tgr_[a-z0-9]+)"/.exec(line)?.[1]);
  if (!ids.at(-1)) return "the transcript has no id";
  const shown = await run(TOLLGATE_BINARY, ["ledger", "show", "--config", CONFIG, ids.at(-1)],
    { env: { PATH: process.env.PATH, STANDIN_KEY: "unused" } });
  const reason = /^why .*$/m.exec(shown.out)?.[0].replace(/\s+/g, " ");
  return `show: exit ${shown.code} ${reason ?? `no reason ${digest(shown.out)}`}`;
}

// A key that may spend a dollar, and a model that calls tools for ever at thirty cents a call.
async function budget() {
  const only = { only: "through" };
  const refused = "API Error: 402 The total budget of this API key has no room for this call*";
  const given = ["--allowedTools", "Bash"];
  const asked = { key: BUDGET_KEY, given };
  const served = "x3 stream:200:* stream:200 stream:200";
  await check("a dollar stops it",
    `exit 1 turns=4 ${refused} ${served} show: exit 0 why the budget: *`,
    async () => `${await told("claude-sonnet-4-5", asked)} ${await why()}`, only);
  await check("the next one is stopped at once", `exit 1 turns=1 ${refused} x0`,
    () => told("claude-sonnet-4-5", asked), only);
  await check("and asked once", "5 records, 2 of them refused budget_exceeded", async () => {
    const tail = await run(TOLLGATE_BINARY,
      ["ledger", "tail", "--config", CONFIG, "--key", "dollar", "--json"],
      { env: { PATH: process.env.PATH, STANDIN_KEY: "unused" } });
    const records = tail.out.trim().split("\n");
    const stopped = records.filter((line) => line.includes("budget_exceeded"));
    return `${records.length} records, ${stopped.length} of them refused budget_exceeded`;
  }, only);
  await check("wrong key", "exit 1 turns=1 *401* x0", () => told(MODEL, { key: "wrong" }), only);
}

mkdirSync(join(home, "work"), { recursive: true });
await answers();
await errors();
await brokenStreams();
await discovery();
await budget();
process.exit(0);
