// What the checks of the Node.js clients have in common, as checks.py has it for Python: the
// stand-in's own account of what it got, and the line that tells what a check has seen.

import { createHash } from "node:crypto";
import http from "node:http";

export const { SIDE, STANDIN, BROKE_KEY } = process.env;
export const ALL = process.env.MODE === "all";
export const HELLO = [{ role: "user", content: "hello" }];
// What the stand-in fills its answers with.
const WORDS = "The toll is counted once and the road stays open. ";
// The smallest PNG: one grey pixel.
export const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";
// Some 400 KB that JSON has to escape, or that are more than a byte a letter.
export const LARGE = 'Grüße, 世界 \\ "\n'.repeat(20_000);
// A client's limit that a hanging provider is sure to reach before a heartbeat comes.
export const SHORT_MS = 600;

function askStandin(method, path) {
  return new Promise((resolve, reject) => {
    const request = http.request(STANDIN + path, { method }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (part) => (text += part));
      answer.on("end", () => resolve(text));
      answer.on("error", reject);
    });
    request.on("error", reject);
    request.end();
  });
}

export async function tally() {
  const lines = (await askStandin("GET", "/tally")).split("\n");
  return lines.filter((line) => line).map((line) => JSON.parse(line));
}

export const clearTally = () => askStandin("DELETE", "/tally");

// How often the provider was asked, and length and CRC-32 of the bodies it was sent.
async function received(numbered) {
  const entries = await tally();
  if (numbered) return `x${entries.length}`;
  const bodies = new Set(entries.map((entry) => `${entry.body_bytes}:${entry.body_crc32}`));
  return `x${entries.length} up=${[...bodies].sort().join(",") || "-"}`;
}

export const digest = (text) => createHash("sha256").update(text).digest("hex").slice(0, 8);

// Its length if it is the stand-in's words, else a digest.
export function textOf(content) {
  if (!content) return "text=0";
  const words = WORDS.repeat(Math.floor(content.length / WORDS.length) + 1);
  return words.startsWith(content) ? `text=${content.length}` : `other text ${digest(content)}`;
}

// What is expected where the sides may differ, for a reason of differences.txt.
export const differs = (why, direct, through) => ({
  expected: { direct, through }[SIDE],
  why,
});

export function say(client, name, { expected, why = "" }, got) {
  process.stdout.write([client, name, SIDE, expected, got, why].join("\t") + "\n");
}

// Errors of a provider by status, and how often an SDK asks that tries again as it does by itself.
export const TRIES = {
  400: 1, 403: 1, 404: 1, 408: 3, 409: 3, 413: 1, 500: 3, 503: 3, 529: 3,
};
const RETRIED = { maxRetries: 2 };

// The stand-in's list of models; the gateway's, of those that it serves by name.
export async function checkModels(check, client) {
  const listed = differs(
    "list", "claude-haiku-4-5 ok x1 up=*", "claude-haiku-4-5 fast hang x0 up=-");
  await check("models", listed, async () => {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    return ids.sort().join(" ");
  });
}

// Every error of a provider, by its status as the SDK tells it. What is wrong with the gateway's
// credential or account is no fault of the caller's: it says so as `ours`, or in its own words.
export async function checkErrors(check, told, ours, ask) {
  for (const [status, tries] of Object.entries(TRIES)) {
    await check(status, `${told[status]} message#* x${tries} up=*`,
      () => ask(`s${status}`, RETRIED));
  }
  const wrong = differs("credential",
    `${told[401]} message#* x1 up=*`, `${ours} message#* x1 up=*`);
  await check("401", wrong, () => ask("s401", RETRIED));
  const usedUp = `${told[402]} message#* x1 up=*`;
  await check("402", differs("account", usedUp, usedUp), () => ask("s402", RETRIED));
  const limited = `${told[429]} message#*`;
  await check("429, no retries", `${limited} x1 up=*`, () => ask("s429"));
  await check("429 with Retry-After", `${limited} waited x3 up=*`,
    () => ask("s429-soon", RETRIED), { waitMs: 2000 });
}

// What only a gateway says, without asking anybody.
export async function checkOwn(check, rows) {
  for (const [name, expected, call] of rows) {
    await check(name, `${expected} message#* x0 up=-`, call, { only: "through" });
  }
}

export async function checkSlow(check, limited, whole, ask) {
  await check("429 with Retry-After 7", `${limited} message#* waited x2 up=*`,
    () => ask("s429", { maxRetries: 1 }), { waitMs: 7000 });
  await check("answer of 5 MiB", `${whole} x1 up=*`, () => ask("big-5m"));
}

// The checks of one client; `told` tells of what it throws.
export function checksOf(client, told) {
  return async (name, expected, call, { only, numbered, waitMs } = {}) => {
    if (only && only !== SIDE) return;
    await clearTally();
    const begun = performance.now();
    let got;
    try {
      got = await call();
    } catch (error) {
      got = told(error);
    }
    if (waitMs) got += performance.now() - begun >= waitMs ? " waited" : " too early";
    got += ` ${await received(numbered)}`;
    say(client, name, typeof expected === "string" ? { expected } : expected, got);
  };
}
