"""The checks of the OpenAI SDK for Python; started by run.sh, which says where to call.

Prints one line a check: client, check, side, expected (a pattern) and got, with tabs between.
What was got names the class of an error, its status and code, a digest of its message, how often
the provider was asked, and what it received: all of it must be the same with and without the
gateway. Deliberately not: streams, until the gateway has them.
"""

import asyncio
import hashlib
import http.client
import json
import os
import time
import urllib.parse

import openai
from openai import AsyncOpenAI, OpenAI

SIDE = os.environ["SIDE"]
FULL = os.environ["MODE"] == "full"
STANDIN = os.environ["STANDIN"]
HELLO = [{"role": "user", "content": "hello"}]
# What the stand-in fills its answers with.
WORDS = "The toll is counted once and the road stays open. "
# A client's limit that a hanging provider is sure to reach.
SHORT_S = 1.0
# How long to wait for the provider to see that its caller has left.
LEFT_LIMIT_S = 10.0
# Each side asks for scenarios of its own that count requests.
FIRST = {"direct": 1001, "through": 2001}[SIDE]

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}
# The smallest PNG: one grey pixel.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)


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


def of_completion(completion):
    content = completion.choices[0].message.content
    true = content and (WORDS * (len(content) // len(WORDS) + 1)).startswith(content)
    usage = completion.usage
    tokens = f"{usage.prompt_tokens}+{usage.completion_tokens}"
    kind = f"text={len(content)}" if true else f"other text {digest(content or '')}"
    return f"{completion.choices[0].finish_reason} {kind} tokens={tokens}"


def of_error(error):
    name = type(error).__name__
    if not isinstance(error, openai.APIStatusError):
        return name
    body = error.body if isinstance(error.body, dict) else {}
    message = body.get("message")
    shown = f"message#{digest(message)}" if message else "no message"
    return f"{name} {error.status_code} code={error.code} {shown}"


def check(name, expected, call, only=None, numbered=False, left=False):
    if only not in (None, SIDE):
        return
    ask_standin("DELETE", "/tally")
    before = ended()
    try:
        got = call()
    except openai.APIError as error:
        got = of_error(error)
    got = f"{got} {received(numbered)}"
    if left:
        got += " left" if all_left(before + len(tally())) else " stays"
    print("openai-python", name, SIDE, expected, got, sep="\t", flush=True)


def all_left(expected):
    """Whether the provider sees each caller that it lets hang leave: as many connections end."""
    until = time.monotonic() + LEFT_LIMIT_S
    while ended() < expected:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def chat(model, max_retries=0, messages=None, timeout=20.0, **more):
    with OpenAI(max_retries=max_retries, timeout=timeout) as client:
        answer = client.chat.completions.create(model=model, messages=messages or HELLO, **more)
        return of_completion(answer)


def request_id():
    with OpenAI() as client:
        answer = client.chat.completions.create(model="ok", messages=HELLO)
        return f"{answer.model} {answer.id} {answer._request_id}"


def with_key(key):
    with OpenAI(api_key=key) as client:
        return of_completion(client.chat.completions.create(model="ok", messages=HELLO))


def models():
    with OpenAI() as client:
        return " ".join(sorted(model.id for model in client.models.list()))


def at_once(count):
    async def run():
        async with AsyncOpenAI(max_retries=0, timeout=30.0) as client:
            create = client.chat.completions.create
            calls = [create(model="slow-50", messages=HELLO) for _ in range(count)]
            return await asyncio.gather(*calls)

    kinds = {of_completion(answer) for answer in asyncio.run(run())}
    return ", ".join(sorted(kinds))


def answers():
    whole = "stop text=* tokens=512+64 x1 up=*"
    image = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    ]
    large = [{"role": "user", "content": "Grüße, 世界 \\ \"\n" * 20_000}]
    check("whole call", whole, lambda: chat("ok"))
    check("ids", "ok chatcmpl-standin req_standin x1 up=*", request_id)
    check("tools", whole, lambda: chat("ok", tools=[TOOL], tool_choice="auto"))
    check("image part", whole, lambda: chat("ok", messages=[{"role": "user", "content": image}]))
    check("prompt of 400 KB", whole, lambda: chat("ok", messages=large))
    check("answer of 64 KiB", whole, lambda: chat("big-64k"))
    check("output cap", "length text=* x1 up=*", lambda: chat("ok-length"))
    check("20 calls at once", "stop text=* tokens=512+64 x20 up=*", lambda: at_once(20))
    check("models", "*fast* x0 up=-", models, only="through")


def upstream_errors():
    limited = "RateLimitError 429 code=rate_limit_exceeded message#*"
    failed = "InternalServerError 500 code=None message#*"
    overloaded = "InternalServerError 503 code=overloaded message#*"
    bad = "BadRequestError 400 code=invalid_value message#* x1 up=*"
    missing = "NotFoundError 404 code=model_not_found message#* x1 up=*"
    denied = "PermissionDeniedError 403 code=model_not_found message#* x1 up=*"
    check("400", bad, lambda: chat("s400", 2))
    check("403", denied, lambda: chat("s403", 2))
    check("404", missing, lambda: chat("s404", 2))
    check("429, no retries", f"{limited} x1 up=*", lambda: chat("s429"))
    check("429 three times", f"{limited} x3 up=*", lambda: chat("s429-now", 2))
    first = f"s429-first-{FIRST}"
    again = "stop text=* tokens=512+64 x2"
    # The number in the model's name, and so the body, differs from side to side.
    check("429, then ok", again, lambda: chat(first, 2), numbered=True)
    check("500, no retries", f"{failed} x1 up=*", lambda: chat("s500"))
    check("500, two retries", f"{failed} x3 up=*", lambda: chat("s500", 2))
    check("503, no retries", f"{overloaded} x1 up=*", lambda: chat("s503"))
    check("503, two retries", f"{overloaded} x3 up=*", lambda: chat("s503", 2))


def broken():
    late = "APITimeoutError"
    hang = lambda retries: chat("hang", retries, timeout=SHORT_S)  # noqa: E731
    check("hang, timeout", f"{late} x1 up=*", lambda: hang(0))
    check("hang, timeout, one retry", f"{late} x2 up=*", lambda: hang(1))
    # What the gateway still holds is answered with an error it can name; what it has begun to
    # pass on can only break off as it did before it.
    cut = {
        "direct": "APIConnectionError x1 up=*",
        "through": "InternalServerError 502 code=upstream_cut message#* x1 up=*",
    }
    check("cut body", cut[SIDE], lambda: chat("cut-body"))
    check("cut chunked body", cut[SIDE], lambda: chat("cut-chunked"))
    check("cut body of 1 MiB", "APIConnectionError x1 up=*", lambda: chat("cut-big"))
    again = cut[SIDE].replace("x1", "x2")
    check("cut body, one retry", again, lambda: chat("cut-body", 1))


def own_errors():
    def own(name, expected, call):
        check(name, expected, call, only="through")

    wrong = "AuthenticationError 401 code=invalid_api_key message#* x0 up=-"
    unknown = "NotFoundError 404 code=model_not_found message#* x0 up=-"
    later = "InternalServerError 501 code=not_implemented message#* x0 up=-"
    ours = "InternalServerError 502 code=upstream_auth message#* x1 up=*"
    own("wrong key", wrong, lambda: with_key("wrong"))
    own("unknown model", unknown, lambda: chat("nobody-serves-this", 2))
    own("stream is not served yet", later, lambda: chat("ok", 2, stream=True))
    # Not the caller's key: no AuthenticationError, and no retry that could not help.
    own("upstream 401 is ours", ours, lambda: chat("s401", 2))


def slow_half():
    # A closed connection looks like a half-closed one, which still gets its answer, until it is
    # written to. So the gateway holds on to the provider; this is to become `left` once it reads
    # on for a bounded while only.
    gone = {"direct": "APITimeoutError x1 up=* left", "through": "APITimeoutError x1 up=* stays"}
    leave = lambda: chat("hang", timeout=SHORT_S)  # noqa: E731
    check("hang, the provider is let go", gone[SIDE], leave, left=True)
    limited = "RateLimitError 429 code=rate_limit_exceeded message#* x2 up=*"
    check("429, waits the 7 s it is told", limited, lambda: chat("s429", 1))
    check("200 calls at once", "stop text=* tokens=512+64 x200 up=*", lambda: at_once(200))
    check("answer of 5 MiB", "stop text=* tokens=512+64 x1 up=*", lambda: chat("big-5m"))


answers()
upstream_errors()
broken()
own_errors()
if FULL:
    slow_half()
