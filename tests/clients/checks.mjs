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
