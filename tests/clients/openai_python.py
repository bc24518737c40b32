"""The checks of the OpenAI SDK for Python; started by run.sh, which says where to call.

What was got names the class of an error, its status and code, a digest of its message, how often
the provider was asked, and what it received: all of it must be the same with and without the
gateway. What a stream that asks for no usage is sent upstream differs, since the gateway asks for
it; what its client gets does not.
"""

import asyncio

import openai
from checks import FULL, HELLO, SIDE, Checks, digest, text_of
from openai import AsyncOpenAI, OpenAI

# A client's limit that a hanging provider is sure to reach.
SHORT_S = 1.0
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


def of_completion(completion):
    choice, usage = completion.choices[0], completion.usage
    tokens = f"{usage.prompt_tokens}+{usage.completion_tokens}"
    return f"{choice.finish_reason} {text_of(choice.message.content)} tokens={tokens}"


def of_error(error):
    """Its class; its status, if it has one; what the error says, as a body or within a stream."""
    name = type(error).__name__
    if not isinstance(error.body, dict):
        return name
    status = getattr(error, "status_code", "in the stream")
    message = error.body.get("message")
    shown = f"message#{digest(message)}" if message else "no message"
    return f"{name} {status} code={error.code} {shown}"


check = Checks("openai-python", openai.APIError, of_error).check


def chat(model, max_retries=0, messages=None, timeout=20.0, **more):
    with OpenAI(max_retries=max_retries, timeout=timeout) as client:
        answer = client.chat.completions.create(model=model, messages=messages or HELLO, **more)
        return of_completion(answer)


class Streamed:
    """What a client puts together from the chunks of a stream."""

    def __init__(self):
        self.chunks, self.text, self.arguments = 0, "", ""
        self.finish, self.usage = None, None

    def take(self, chunk):
        self.chunks += 1
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices:
            self.text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                self.arguments += call.function.arguments or ""
            self.finish = choice.finish_reason or self.finish

    def __str__(self):
        usage = self.usage and f"{self.usage.prompt_tokens}+{self.usage.completion_tokens}"
        shown = f"{self.finish} {text_of(self.text)} chunks={self.chunks} tokens={usage}"
        return f"{shown} arguments#{digest(self.arguments)}" if self.arguments else shown


def stream(model, max_retries=0, **more):
    streamed = Streamed()
    with OpenAI(max_retries=max_retries, timeout=20.0) as client:
        create = client.chat.completions.create
        for chunk in create(model=model, messages=HELLO, stream=True, **more):
            streamed.take(chunk)
    return str(streamed)


def streams_at_once(count):
    async def one(client):
        streamed = Streamed()
        create = client.chat.completions.create
        async for chunk in await create(model="stream-slow-20", messages=HELLO, stream=True):
            streamed.take(chunk)
        return str(streamed)

    async def run():
        async with AsyncOpenAI(max_retries=0, timeout=30.0) as client:
            return await asyncio.gather(*[one(client) for _ in range(count)])

    return ", ".join(sorted(set(asyncio.run(run()))))


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


def streams():
    usage = {"include_usage": True}
    whole = "stop text=* chunks=* tokens=None x1"
    check("stream", whole, lambda: stream("ok"), numbered=True)
    told = "stop text=* chunks=* tokens=512+64 x1 up=*"
    check("stream that asks for usage", told, lambda: stream("ok", stream_options=usage))
    check("stream with comments", whole, lambda: stream("stream-ping"), numbered=True)
    other = "stop other text * chunks=* tokens=None x1"
    check("stream of one byte a write", other, lambda: stream("stream-utf8"), numbered=True)
    tools = "tool_calls text=* chunks=* tokens=None arguments#* x1"
    ask = lambda: stream("stream-tools", tools=[TOOL])  # noqa: E731
    check("stream with a tool call", tools, ask, numbered=True)
    check("20 streams at once", whole.replace("x1", "x20"), lambda: streams_at_once(20),
          numbered=True)
    check("503 to a stream", "InternalServerError 503 code=overloaded message#* x1",
          lambda: stream("s503"), numbered=True)
    again = lambda: stream(f"s429-first-{FIRST + 1}", 2)  # noqa: E731
    check("429, then a stream", whole.replace("x1", "x2"), again, numbered=True)


def broken_streams():
    # Between two events the gateway can say what happened; a broken connection cannot.
    cut = {
        "direct": "APIConnectionError x1",
        "through": "APIError in the stream code=upstream_cut message#* x1",
    }
    check("cut stream", cut[SIDE], lambda: stream("stream-cut-3"), numbered=True)
    check("stream cut inside an event", cut[SIDE], lambda: stream("stream-cut-in-event"),
          numbered=True)
    middle = "APIError in the stream code=server_error message#* x1"
    check("error within a stream", middle, lambda: stream("stream-err-mid"), numbered=True)
    # Before the first word it can still become the status that it stands for.
    first = {
        "direct": "APIError in the stream code=rate_limit_exceeded message#* x1",
        "through": "RateLimitError 429 code=rate_limit_exceeded message#* x1",
    }
    check("error as the first event", first[SIDE], lambda: stream("stream-err-rate"),
          numbered=True)
    empty = {
        "direct": "None text=0 chunks=0 tokens=None x1",
        "through": "InternalServerError 502 code=empty_completion message#* x1",
    }
    check("empty stream", empty[SIDE], lambda: stream("stream-empty"), numbered=True)


def own_errors():
    def own(name, expected, call):
        check(name, expected, call, only="through")

    wrong = "AuthenticationError 401 code=invalid_api_key message#* x0 up=-"
    unknown = "NotFoundError 404 code=model_not_found message#* x0 up=-"
    ours = "InternalServerError 502 code=upstream_auth message#* x1 up=*"
    own("wrong key", wrong, lambda: with_key("wrong"))
    own("unknown model", unknown, lambda: chat("nobody-serves-this", 2))
    # Not the caller's key: no AuthenticationError, and no retry that could not help.
    own("upstream 401 is ours", ours, lambda: chat("s401", 2))


def slow_half():
    # A closed connection looks like a half-closed one, which still gets its answer, until it is
    # written to. So the gateway holds on to the provider until it answers or its time is over.
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
streams()
broken_streams()
own_errors()
if FULL:
    slow_half()
