"""What the checks of the Python SDKs have in common: the stand-in's own account of what it got, and
the line that tells what a check has seen.

A line has client, check, side, expected (a pattern), got and, where the sides may differ, the
reason of differences.txt, with tabs between.
"""

import hashlib
import http.client
import json
import os
import time
import urllib.parse

SIDE = os.environ["SIDE"]
BROKE_KEY = os.environ["BROKE_KEY"]
ALL = os.environ["MODE"] == "all"
STANDIN = os.environ["STANDIN"]
HELLO = [{"role": "user", "content": "hello"}]
# What the stand-in fills its answers with.
WORDS = "The toll is counted once and the road stays open. "
# How long to wait for the provider to see that its caller has left.
LEFT_LIMIT_S = 10.0

# The smallest PNG: one grey pixel.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
# Some 400 KB that JSON has to escape, or that are more than a byte a letter.
LARGE = "Grüße, 世界 \\ \"\n" * 20_000
# Clients' limits: one that a hanging provider is sure to reach before a heartbeat comes, and one
# that is longer than the time between two heartbeats and shorter than a provider's silence.
SHORT_S = 0.6
PATIENT_S = 2.0

# One connection for all questions, so that it does not move the number of those that have ended.
QUESTIONS = http.client.HTTPConnection(urllib.parse.urlsplit(STANDIN).netloc, timeout=5)


def ask_standin(method, path):
    QUESTIONS.request(method, path)
    return QUESTIONS.getresponse().read().decode()


def tally():
    return [json.loads(line) for line in ask_standin("GET", "/tally").splitlines()]


def ended():
    """How many connections to the stand-in have ended."""
    counts = json.loads(ask_standin("GET", "/counts"))
    return counts["connections"] - counts["open"]


def received(numbered=False):
    """How often the provider was asked, and length and CRC-32 of the bodies it was sent."""
    entries = tally()
    if numbered:
        return f"x{len(entries)}"
    bodies = sorted({f"{entry['body_bytes']}:{entry['body_crc32']}" for entry in entries})
    return f"x{len(entries)} up={','.join(bodies) or '-'}"


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def text_of(content):
    """Its length if it is the stand-in's words, else a digest."""
    if not content:
        return "text=0"
    true = (WORDS * (len(content) // len(WORDS) + 1)).startswith(content)
    return f"text={len(content)}" if true else f"other text {digest(content)}"


def differs(why, direct, through):
    """What is expected where the sides may differ, for a reason of differences.txt."""
    return {"direct": direct, "through": through}[SIDE], why


# Errors of a provider by status, and how often an SDK asks that tries again as it does by itself.
TRIES = {400: 1, 403: 1, 404: 1, 408: 3, 409: 3, 413: 1, 500: 3, 503: 3, 529: 3}
# The stand-in's list of models; the gateway's, of those that it serves by name.
LISTED = differs("list", "claude-haiku-4-5 ok x1 up=*", "claude-haiku-4-5 fast hang x0 up=-")


def ids_of(models):
    return " ".join(sorted(model.id for model in models))


class Checks:
    """The checks of one client. `error` is the class of what it raises, `told` tells of one."""

    def __init__(self, client, error, told):
        self.client, self.error, self.told = client, error, told

    def check(self, name, expected, call, only=None, numbered=False, left=False, wait_s=None):
        if only not in (None, SIDE):
            return
        expected, why = expected if isinstance(expected, tuple) else (expected, "")
        ask_standin("DELETE", "/tally")
        before, begun = ended(), time.monotonic()
        try:
            got = call()
        except self.error as error:
            got = self.told(error)
        if wait_s:
            got += " waited" if time.monotonic() - begun >= wait_s else " too early"
        got = f"{got} {received(numbered)}"
        if left:
            got += " left" if all_left(before + len(tally())) else " stays"
        print(self.client, name, SIDE, expected, got, why, sep="\t", flush=True)


    def own(self, name, expected, call):
        """What only a gateway says, without asking anybody."""
        self.check(name, f"{expected} x0 up=-", call, only="through")

    def errors(self, told, ours, ask):
        """Every error of a provider, by its status as the SDK tells it. What is wrong with the
        gateway's credential or account is no fault of the caller's: it says so as `ours`, or in
        its own words."""
        for status, tries in TRIES.items():
            expected = f"{told[status]} message#* x{tries} up=*"
            self.check(f"{status}", expected, lambda: ask(f"s{status}", 2))
        wrong = differs("credential", f"{told[401]} message#* x1 up=*", f"{ours} message#* x1 up=*")
        self.check("401", wrong, lambda: ask("s401", 2))
        used_up = f"{told[402]} message#* x1 up=*"
        self.check("402", differs("account", used_up, used_up), lambda: ask("s402", 2))
        limited = f"{told[429]} message#*"
        self.check("429, no retries", f"{limited} x1 up=*", lambda: ask("s429"))
        self.check("429 with Retry-After", f"{limited} waited x3 up=*",
                   lambda: ask("s429-soon", 2), wait_s=2)

    def slow(self, limited, whole, ask):
        self.check("429 with Retry-After 7", f"{limited} message#* waited x2 up=*",
                   lambda: ask("s429", 1), wait_s=7)
        self.check("answer of 5 MiB", f"{whole} x1 up=*", lambda: ask("big-5m"))


def all_left(expected):
    """Whether the provider sees each caller that it lets hang leave: as many connections end."""
    until = time.monotonic() + LEFT_LIMIT_S
    while ended() < expected:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
