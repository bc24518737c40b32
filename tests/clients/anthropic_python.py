"""The checks of the Anthropic SDK for Python; started by run.sh, which says where to call.

As those of the OpenAI SDK: what was got must be the same with and without the gateway, bodies that
the provider receives among it, except where a check says otherwise for each side.
"""

import anthropic
import httpx2
from anthropic import Anthropic
from checks import HELLO, SIDE, Checks, digest, text_of

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


def of_message(message):
    usage = message.usage
    text = "".join(block.text for block in message.content if block.type == "text")
    shown = f"{message.stop_reason} {text_of(text)}"
    for block in message.content:
        if block.type == "tool_use":
            shown += f" {block.name}#{digest(str(block.input))}"
    return f"{shown} tokens={usage.input_tokens}+{usage.output_tokens}"


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
check = Checks("anthropic-python", ERRORS, of_error).check


def asked(model, **more):
    return {"model": model, "max_tokens": 100, "messages": HELLO, **more}


def create(model, max_retries=0, key=None, **more):
    with Anthropic(max_retries=max_retries, timeout=20.0, auth_token=key) as client:
        return of_message(client.messages.create(**asked(model, **more)))


def stream(model, max_retries=0, **more):
    with Anthropic(max_retries=max_retries, timeout=20.0) as client:
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
        return " ".join(sorted(model.id for model in client.models.list()))


def answers():
    whole = "end_turn text=* tokens=512+64 x1 up=*"
    check("whole message", whole, lambda: create("claude-haiku-4-5"))
    check("stream", whole, lambda: stream("claude-haiku-4-5"))
    began = "* events, message_start to message_stop x1 up=*"
    check("events of a stream", began, lambda: events("claude-haiku-4-5"))
    check("stream with pings", whole, lambda: stream("stream-ping"))
    other = "end_turn other text * tokens=512+64 x1 up=*"
    check("stream of one byte a write", other, lambda: stream("stream-utf8"))
    tools = "tool_use text=* look_up#* tokens=512+64 x1 up=*"
    check("stream with a tool call", tools, lambda: stream("stream-tools", tools=[TOOL]))
    check("count of tokens", "512 tokens x1 up=*", lambda: count("claude-haiku-4-5"))
    check("models", "*fast* x0 up=-", models, only="through")


def errors():
    for status, name, kind in [
        (400, "BadRequestError", "invalid_request_error"),
        (404, "NotFoundError", "not_found_error"),
        (429, "RateLimitError", "rate_limit_error"),
        (503, "ServiceUnavailableError", "overloaded_error"),
    ]:
        told = f"{name} {status} type={kind} message#* x1 up=*"
        check(f"{status}", told, lambda: create(f"s{status}"))
        check(f"{status} to a stream", told, lambda: stream(f"s{status}"))
    again = "end_turn text=* tokens=512+64 x2"
    check("429, then a stream", again, lambda: stream(f"s429-first-{FIRST}", 2), numbered=True)


def broken_streams():
    # Between two events the gateway can say what happened; a broken connection cannot.
    cut = {
        "direct": "RemoteProtocolError x1 up=*",
        "through": "APIStatusError 200 type=api_error message#* x1 up=*",
    }
    check("cut stream", cut[SIDE], lambda: stream("stream-cut-3"))
    inside = "RemoteProtocolError x1 up=*"
    check("stream cut inside an event", inside, lambda: stream("stream-cut-in-event"))
    middle = "APIStatusError 200 type=api_error message#* x1 up=*"
    check("error within a stream", middle, lambda: stream("stream-err-mid"))
    # Before the first word it can still become the status that it stands for.
    first = {
        "direct": "APIStatusError 200 type=overloaded_error message#* x1 up=*",
        "through": "OverloadedError 529 type=overloaded_error message#* x1 up=*",
    }
    check("error as the first event", first[SIDE], lambda: stream("stream-err-first"))


def own_errors():
    def own(name, expected, call):
        check(name, expected, call, only="through")

    wrong = "AuthenticationError 401 type=authentication_error message#* x0 up=-"
    unknown = "NotFoundError 404 type=not_found_error message#* x0 up=-"
    other = "BadRequestError 400 type=invalid_request_error message#* x0 up=-"
    own("wrong key", wrong, lambda: create("claude-haiku-4-5", key="wrong"))
    own("unknown model", unknown, lambda: create("nobody-serves-this", 2))
    own("model of the other dialect", other, lambda: create("fast", 2))


answers()
errors()
broken_streams()
own_errors()
