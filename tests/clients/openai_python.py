"""The checks of the OpenAI SDK for Python; started by pair.sh, which says where to call.

What was got names the class of an error, its status and code, a digest of its message, how often
the provider was asked, and what it received: all of it must be the same with and without the
gateway. What a stream that asks for no usage is sent upstream differs, since the gateway asks for
it; what its client gets does not. Unless a check says otherwise the SDK retries as it does by
default: two times.
"""

import asyncio

import openai
from checks import (
    ALL, BROKE_KEY, HELLO, LARGE, LISTED, PATIENT_S, PIXEL, SHORT_S, SIDE, Checks, differs, digest,
    ids_of, text_of,
)
from openai import AsyncOpenAI, OpenAI

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
# What a client says once it has done what two calls asked for.
GIVEN = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": f"call_{n}", "type": "function",
             "function": {"name": "weather", "arguments": '{"place":"Zürich"}'}}
            for n in range(2)
        ],
    },
    *({"role": "tool", "tool_call_id": f"call_{n}", "content": "föhn"} for n in range(2)),
]


def of_completion(completion):
    choice, usage = completion.choices[0], completion.usage
    tokens = f"{usage.prompt_tokens}+{usage.completion_tokens}"
    called = "".join(
        f" {call.id} {call.function.name}#{digest(call.function.arguments)}"
        for call in choice.message.tool_calls or []
    )
    return f"{choice.finish_reason} {text_of(choice.message.content)}{called} tokens={tokens}"


def of_error(error):
    """Its class; its status, if it has one; what the error says, as a body or within a stream."""
    name = type(error).__name__
    if not isinstance(error.body, dict):
        return name
    status = getattr(error, "status_code", "in the stream")
    message = error.body.get("message")
    shown = f"message#{digest(message)}" if message else "no message"
    return f"{name} {status} code={error.code} {shown}"


checks = Checks("openai-python", openai.APIError, of_error)
check = checks.check


def chat(model, max_retries=0, messages=None, timeout=20.0, **more):
    with OpenAI(max_retries=max_retries, timeout=timeout) as client:
        answer = client.chat.completions.create(model=model, messages=messages or HELLO, **more)
        return of_completion(answer)


class Streamed:
    """What a client puts together from the chunks of a stream."""

    def __init__(self):
        self.chunks, self.text, self.calls = 0, "", {}
        self.finish, self.usage = None, None

    def take(self, chunk):
        self.chunks += 1
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices:
            self.text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                called = self.calls.setdefault(call.index, [call.id, call.function.name, ""])
                called[2] += call.function.arguments or ""
            self.finish = choice.finish_reason or self.finish

    def __str__(self):
        usage = self.usage and f"{self.usage.prompt_tokens}+{self.usage.completion_tokens}"
        calls = "".join(f" {id} {name}#{digest(text)}" for id, name, text in self.calls.values())
        return f"{self.finish} {text_of(self.text)} chunks={self.chunks}{calls} tokens={usage}"


def stream(model, max_retries=0, timeout=20.0, **more):
    streamed = Streamed()
    with OpenAI(max_retries=max_retries, timeout=timeout) as client:
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
        return ids_of(client.models.list())


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
    large = [{"role": "user", "content": LARGE}]
    check("whole call", whole, lambda: chat("ok"))
    check("ids", "ok chatcmpl-standin req_standin x1 up=*", request_id)
    check("image in base64", whole,
          lambda: chat("ok", messages=[{"role": "user", "content": image}]))
    check("body of 400 KB", whole, lambda: chat("ok", messages=large))
    check("answer of 64 KiB", whole, lambda: chat("big-64k"))
    check("output cap", "length text=* x1 up=*", lambda: chat("ok-length"))
    check("20 calls at once", "stop text=* tokens=512+64 x20 up=*", lambda: at_once(20))
    check("models", LISTED, models)


def tools():
    whole = "tool_calls text=* call_standin look_up#* tokens=512+64 x1 up=*"
    check("tool call", whole, lambda: chat("stream-tools", tools=[TOOL], tool_choice="auto"))
    two = "look_up#* call_standin_1 look_up#*"
    check("two tool calls", whole.replace("look_up#*", two),
          lambda: chat("stream-tools-2", tools=[TOOL]))
    streamed = "tool_calls text=* chunks=* call_standin look_up#* tokens=None x1"
    ask = lambda: stream("stream-tools", tools=[TOOL])  # noqa: E731
    check("stream with a tool call", streamed, ask, numbered=True)
    ask_two = lambda: stream("stream-tools-2", tools=[TOOL])  # noqa: E731
    check("stream with two tool calls", streamed.replace("look_up#*", two), ask_two, numbered=True)
    given = [*HELLO, *GIVEN]
    result = "stop text=* tokens=512+64 x1 up=*"
    check("result of a tool", result, lambda: chat("ok", messages=given, tools=[TOOL]))


TOLD = {
    400: "BadRequestError 400 code=invalid_value",
    401: "AuthenticationError 401 code=invalid_api_key",
    402: "APIStatusError 402 code=insufficient_funds",
    403: "PermissionDeniedError 403 code=model_not_found",
    404: "NotFoundError 404 code=model_not_found",
    408: "APIStatusError 408 code=request_timeout",
    409: "ConflictError 409 code=conflict",
    413: "APIStatusError 413 code=request_too_large",
    429: "RateLimitError 429 code=rate_limit_exceeded",
    500: "InternalServerError 500 code=None",
    503: "InternalServerError 503 code=overloaded",
    529: "InternalServerError 529 code=None",
}


def errors():
    checks.errors(TOLD, "InternalServerError 502 code=upstream_auth", chat)
    again = "stop text=* tokens=512+64 x2"
    # The number in the model's name, and so the body, differs from side to side.
    check("429, then ok", again, lambda: chat(f"s429-first-{FIRST}", 2), numbered=True)
    check("503 to a stream", f"{TOLD[503]} message#* x3", lambda: stream("s503", 2), numbered=True)
    then = lambda: stream(f"s429-first-{FIRST + 1}", 2)  # noqa: E731
    check("429, then a stream", "stop text=* chunks=* tokens=None x2", then, numbered=True)


def broken():
    late = "APITimeoutError"
    hang = lambda retries: chat("hang", retries, timeout=SHORT_S)  # noqa: E731
    check("stall, timeout", f"{late} x1 up=*", lambda: hang(0))
    check("stall, timeout, one retry", f"{late} x2 up=*", lambda: hang(1))
    # What the gateway still holds is answered with an error it can name; what it has begun to
    # pass on can only break off as it did before it.
    lost = "APIConnectionError x1 up=*"
    cut = differs("told", lost, "InternalServerError 502 code=upstream_cut message#* x1 up=*")
    check("cut body", cut, lambda: chat("cut-body"))
    check("cut chunked body", cut, lambda: chat("cut-chunked"))
    check("cut body of 1 MiB", lost, lambda: chat("cut-big"))
    again = (cut[0].replace("x1", "x3"), cut[1])
    check("cut body, retries", again, lambda: chat("cut-body", 2))


def streams():
    usage = {"include_usage": True}
    whole = "stop text=* chunks=* tokens=None x1"
    check("stream", whole, lambda: stream("ok"), numbered=True)
    told = "stop text=* chunks=* tokens=512+64 x1 up=*"
    check("stream that asks for usage", told, lambda: stream("ok", stream_options=usage))
    check("stream with comments", whole, lambda: stream("stream-ping"), numbered=True)
    other = "stop other text * chunks=* tokens=None x1"
    check("stream of one byte a write", other, lambda: stream("stream-utf8"), numbered=True)
    check("20 streams at once", whole.replace("x1", "x20"), lambda: streams_at_once(20),
          numbered=True)


def broken_streams():
    # Between two events the gateway can say what happened; a broken connection cannot.
    cut = differs("told", "APIConnectionError x1",
                  "APIError in the stream code=upstream_cut message#* x1")
    check("cut stream", cut, lambda: stream("stream-cut-3", 2), numbered=True)
    check("reset stream", cut, lambda: stream("stream-rst-3", 2), numbered=True)
    check("stream cut inside an event", cut, lambda: stream("stream-cut-in-event", 2),
          numbered=True)
    ended = differs("told", "None text=* chunks=* tokens=None x1",
                    "APIError in the stream code=upstream_cut message#* x1")
    check("stream without its end", ended, lambda: stream("stream-trunc", 2), numbered=True)
    middle = "APIError in the stream code=server_error message#* x1"
    check("error within a stream", middle, lambda: stream("stream-err-mid", 2), numbered=True)
    # Before the first word it can still become the status that it stands for.
    first = differs("status", "APIError in the stream code=rate_limit_exceeded message#* x1",
                    "RateLimitError 429 code=rate_limit_exceeded message#* x1")
    check("error as the first event", first, lambda: stream("stream-err-rate"), numbered=True)
    empty = differs("empty", "None text=0 chunks=0 tokens=None x1",
                    "InternalServerError 502 code=empty_completion message#* x1")
    check("empty stream", empty, lambda: stream("stream-empty"), numbered=True)
    check("stalled stream, timeout", "APITimeoutError x1",
          lambda: stream("stream-stall", 2, timeout=SHORT_S), numbered=True)
    silent = differs("heartbeat", "APITimeoutError x1", "stop text=* chunks=* tokens=None x1")
    check("silent stream, timeout", silent,
          lambda: stream("stream-gap-ms-3000", 2, timeout=PATIENT_S), numbered=True)


def own_errors():
    own = checks.own
    own("wrong key", f"{TOLD[401]} message#*", lambda: with_key("wrong"))
    spent = "APIStatusError 402 code=budget_exceeded message#*"
    own("spent budget", spent, lambda: with_key(BROKE_KEY))
    own("unknown model", f"{TOLD[404]} message#*", lambda: chat("nobody-serves-this", 2))


def slow():
    # A closed connection looks like a half-closed one, which still gets its answer: the gateway
    # holds on to the provider, for a second here.
    leave = lambda: chat("hang", timeout=SHORT_S)  # noqa: E731
    check("stall, the provider is let go", "APITimeoutError x1 up=* left", leave, left=True)
    check("200 calls at once", "stop text=* tokens=512+64 x200 up=*", lambda: at_once(200))
    checks.slow(TOLD[429], "stop text=* tokens=512+64", chat)


answers()
tools()
errors()
broken()
streams()
broken_streams()
own_errors()
if ALL:
    slow()
