"""The checks of the Anthropic SDK for Python; started by pair.sh, which says where to call.

As those of the OpenAI SDK: what was got must be the same with and without the gateway, bodies that
the provider receives among it, except where a check says otherwise for each side.
"""

import anthropic
import httpx2
from anthropic import Anthropic
from checks import (
    ALL, BROKE_KEY, HELLO, LARGE, LISTED, PATIENT_S, PIXEL, SHORT_S, SIDE, TRIES, Checks, differs,
    digest, ids_of, text_of,
)

# Each side asks for scenarios of its own that count requests.
FIRST = {"direct": 3001, "through": 4001}[SIDE]

TOOL = {
    "name": "look_up",
    "description": "Looks a place up",
    "input_schema": {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
    },
}
# What a client says once it has done what two calls asked for.
GIVEN = [
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Two places.", "signature": "c2lnbmVk"},
        *({"type": "tool_use", "id": f"toolu_{n}", "name": "look_up", "input": {"place": "Zürich"}}
          for n in range(2)),
    ]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "föhn", "is_error": n == 1}
        for n in range(2)
    ]},
]
IMAGE = [{"role": "user", "content": [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    {"type": "text", "text": "What is this?"},
]}]


def of_message(message):
    usage = message.usage
    text = "".join(block.text for block in message.content if block.type == "text")
    shown = f"{message.stop_reason} {text_of(text)}"
    for block in message.content:
        if block.type == "tool_use":
            shown += f" {block.id} {block.name}#{digest(str(block.input))}"
    return f"{shown} tokens={f'{usage.input_tokens}+{usage.output_tokens}' if usage else None}"


def of_error(error):
    name = type(error).__name__
    body = getattr(error, "body", None)
    if not isinstance(body, dict):
        return name
    said = body.get("error") or {}
    shown = f"message#{digest(said['message'])}" if said.get("message") else "no message"
    return f"{name} {error.status_code} type={said.get('type')} {shown}"


# A stream that breaks off is told by the transport's own error.
ERRORS = (anthropic.AnthropicError, httpx2.TransportError)
checks = Checks("anthropic-python", ERRORS, of_error)
check = checks.check


def asked(model, **more):
    return {"model": model, "max_tokens": 100, "messages": HELLO, **more}


def create(model, max_retries=0, key=None, timeout=20.0, **more):
    with Anthropic(max_retries=max_retries, timeout=timeout, auth_token=key) as client:
        return of_message(client.messages.create(**asked(model, **more)))


def stream(model, max_retries=0, timeout=20.0, **more):
    with Anthropic(max_retries=max_retries, timeout=timeout) as client:
        with client.messages.stream(**asked(model, **more)) as events:
            return of_message(events.get_final_message())


def events(model):
    with Anthropic(max_retries=0, timeout=20.0) as client:
        kinds = [event.type for event in client.messages.create(stream=True, **asked(model))]
    return f"{len(kinds)} events, {kinds[0]} to {kinds[-1]}"


def count(model):
    with Anthropic(max_retries=0, timeout=20.0) as client:
        counted = client.messages.count_tokens(model=model, messages=HELLO)
        return f"{counted.input_tokens} tokens"


def models():
    with Anthropic() as client:
        return ids_of(client.models.list())


def answers():
    whole = "end_turn text=* tokens=512+64 x1 up=*"
    check("whole message", whole, lambda: create("claude-haiku-4-5"))
    check("image in base64", whole, lambda: create("claude-haiku-4-5", messages=IMAGE))
    large = [{"role": "user", "content": LARGE}]
    check("body of 400 KB", whole, lambda: create("claude-haiku-4-5", messages=large))
    check("stream", whole, lambda: stream("claude-haiku-4-5"))
    began = "* events, message_start to message_stop x1 up=*"
    check("events of a stream", began, lambda: events("claude-haiku-4-5"))
    check("stream with pings", whole, lambda: stream("stream-ping"))
    other = "end_turn other text * tokens=512+64 x1 up=*"
    check("stream of one byte a write", other, lambda: stream("stream-utf8"))
    check("count of tokens", "512 tokens x1 up=*", lambda: count("claude-haiku-4-5"))
    check("models", LISTED, models)


def tools():
    one = "tool_use text=* toolu_standin look_up#* tokens=512+64 x1 up=*"
    two = one.replace("look_up#*", "look_up#* toolu_standin_1 look_up#*")
    check("tool call", one, lambda: create("stream-tools", tools=[TOOL]))
    check("two tool calls", two, lambda: create("stream-tools-2", tools=[TOOL]))
    check("stream with a tool call", one, lambda: stream("stream-tools", tools=[TOOL]))
    check("stream with two tool calls", two, lambda: stream("stream-tools-2", tools=[TOOL]))
    given = [*HELLO, *GIVEN]
    check("result of a tool", "end_turn text=* tokens=512+64 x1 up=*",
          lambda: create("claude-haiku-4-5", messages=given, tools=[TOOL]))


TOLD = {
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
}


def errors():
    checks.errors(TOLD, "InternalServerError 502 type=api_error", create)
    for status in (status for status, tries in TRIES.items() if tries == 1):
        told = f"{TOLD[status]} message#* x1 up=*"
        check(f"{status} to a stream", told, lambda: stream(f"s{status}", 2))
    again = "end_turn text=* tokens=512+64 x2"
    check("429, then a stream", again, lambda: stream(f"s429-first-{FIRST}", 2), numbered=True)


def broken():
    late = "APITimeoutError x1 up=*"
    check("stall, timeout", late, lambda: create("hang", timeout=SHORT_S))
    cut = differs("told", "APIConnectionError x3 up=*",
                  "InternalServerError 502 type=api_error message#* x3 up=*")
    check("cut body, retries", cut, lambda: create("cut-body", 2))
    check("cut body of 1 MiB", "APIConnectionError x3 up=*", lambda: create("cut-big", 2))


def broken_streams():
    # Between two events the gateway can say what happened; a broken connection cannot.
    named = "APIStatusError 200 type=api_error message#* x1 up=*"
    cut = differs("told", "RemoteProtocolError x1 up=*", named)
    check("cut stream", cut, lambda: stream("stream-cut-3", 2))
    reset = differs("told", "ReadError x1 up=*", named)
    check("reset stream", reset, lambda: stream("stream-rst-3", 2))
    inside = "RemoteProtocolError x1 up=*"
    check("stream cut inside an event", inside, lambda: stream("stream-cut-in-event", 2))
    check("stream without its end", differs("told", "None text=* tokens=None x1 up=*", named),
          lambda: stream("stream-trunc", 2))
    check("error within a stream", named, lambda: stream("stream-err-mid", 2))
    # Before the first word it can still become the status that it stands for.
    first = differs("status", "APIStatusError 200 type=overloaded_error message#* x1 up=*",
                    "OverloadedError 529 type=overloaded_error message#* x1 up=*")
    check("error as the first event", first, lambda: stream("stream-err-first"))
    check("stalled stream, timeout", "ReadTimeout x1 up=*",
          lambda: stream("stream-stall", 2, timeout=SHORT_S))
    silent = differs("heartbeat", "ReadTimeout x1 up=*", "end_turn text=* tokens=512+64 x1 up=*")
    check("silent stream, timeout", silent,
          lambda: stream("stream-gap-ms-3000", 2, timeout=PATIENT_S))


def own_errors():
    own = checks.own
    own("wrong key", f"{TOLD[401]} message#*", lambda: create("claude-haiku-4-5", key="wrong"))
    spent = "PaymentRequiredError 402 type=* message#*"
    own("spent budget", spent, lambda: create("claude-haiku-4-5", 2, key=BROKE_KEY))
    own("unknown model", f"{TOLD[404]} message#*", lambda: create("nobody-serves-this", 2))
    own("model of the other dialect", f"{TOLD[400]} message#*", lambda: create("fast", 2))


answers()
tools()
errors()
broken()
broken_streams()
own_errors()
if ALL:
    checks.slow(TOLD[429], "end_turn text=* tokens=512+64", create)
