#!/usr/bin/env bash
# The checks of curl; started by pair.sh, which says where and in what form to answer.
set -euo pipefail

scratch="$(mktemp -d)"
readonly scratch
trap 'rm -rf "$scratch"' EXIT
readonly chat="$OPENAI_BASE_URL/chat/completions"
readonly hello='"messages":[{"role":"user","content":"hello"}]'
readonly json='content-type: application/json'
readonly bearer="authorization: Bearer $OPENAI_API_KEY"
readonly line='%{http_code} '

# Trusts the gateway's own CA where there is one.
curl() { command curl ${CA_FILE:+--cacert "$CA_FILE"} "$@"; }

# What the stand-in received since `clear`: attempts, and length and CRC-32 of each body.
clear() { curl --silent --noproxy '*' --output /dev/null -X DELETE "$STANDIN/tally"; }
received() {
  curl --silent --noproxy '*' "$STANDIN/tally" >"$scratch/tally"
  local bodies
  bodies="$(sed -E 's/.*"body_bytes":([0-9]+),"body_crc32":([0-9]+).*/\1:\2/' "$scratch/tally" |
    sort -u | paste -sd, -)"
  printf 'x%s up=%s' "$(grep -c . "$scratch/tally" || true)" "${bodies:--}"
}

# The first eight digits say enough to tell two answers apart.
digest() { sha256sum <"$1" | cut -c1-8; }

# The error's code and whether it has a message, else length and digest of the body.
body() {
  local code
  code="$(sed -nE 's/.*"code":"([a-z_]+)".*/\1/p' "$1" | head -1)"
  if [[ -z "$code" ]]; then
    printf 'body=%s:%s' "$(wc -c <"$1")" "$(digest "$1")"
  elif grep -q '"message":"[^"]' "$1"; then
    printf 'code=%s message' "$code"
  else
    printf 'code=%s no message' "$code"
  fi
}

# call ARGUMENT…: status and body of one call; its own exit code if curl itself failed.
call() {
  local result
  : >"$scratch/body"
  if result="$(curl --silent --noproxy '*' --max-time 20 --output "$scratch/body" \
    --write-out "$line" "$@")"; then
    printf '%s%s' "$result" "$(body "$scratch/body")"
  else
    printf 'curl error %s' "$?"
  fi
}

# check SIDE NAME EXPECTED ARGUMENT…: SIDE is `both`, or `through` for what only a gateway says.
check() {
  local sides="$1" name="$2" expected="$3" got
  shift 3
  [[ $sides == both || $sides == "$SIDE" ]] || return 0
  clear
  got="$(call "$@")"
  printf 'curl\t%s\t%s\t%s\t%s %s\t%s\n' "$name" "$SIDE" "$expected" "$got" "$(received)" \
    "${why:-}"
}

said() { printf 'curl\t%s\t%s\t%s\t%s\n' "$1" "$SIDE" "$2" "$3"; }

post() { check "$1" "$2" "$3" -H "$bearer" -H "$json" "${@:4}" "$chat"; }

# asked SIDE NAME EXPECTED MODEL ARGUMENT…: a stream that asks for its usage: the gateway has nothing
# to change in what it sends.
asked() {
  post "${@:1:3}" "${@:5}" \
    -d "{\"model\":\"$4\",\"stream\":true,\"stream_options\":{\"include_usage\":true},$hello}"
}

# unasked NAME EXPECTED: a stream that does not. The gateway asks for it and hides the chunk that
# has it, so what is sent upstream differs. What the client gets does so in one thing: a provider
# that is asked writes `"usage":null` into all other chunks.
unasked() {
  clear
  local got sent
  got="$(call -H "$bearer" -H "$json" -d "{\"model\":\"ok\",\"stream\":true,$hello}" "$chat")"
  sent="$(received)"
  sed -i 's/,"usage":null//g' "$scratch/body"
  said "$1" "$2" "${got%% *} $(body "$scratch/body") ${sent%% *}"
}

messages() {
  check "$1" "$2" "$3" -H "$bearer" -H "$json" -H 'anthropic-version: 2023-06-01' -d "$4" \
    "$OPENAI_BASE_URL/messages"
}

# body_of BYTES: a call whose prompt makes the body about so long.
body_of() {
  printf '{"model":"ok","messages":[{"role":"user","content":"'
  head -c "$1" /dev/zero | tr '\0' 'a'
  printf '"}]}'
}

# One connection, three calls: the second and third connect no more.
keep_alive() {
  clear
  local got
  got="$(curl --silent --noproxy '*' --max-time 20 -H "$bearer" -H "$json" \
    -d "{\"model\":\"ok\",$hello}" --write-out '%{http_code}/%{num_connects} ' \
    -o /dev/null "$chat" -o /dev/null "$chat" -o /dev/null "$chat")" || got="curl error $?"
  said "three calls on one connection" '200/1 200/0 200/0 x3 up=*' "$got$(received)"
}

# The gateway asks for the body before it comes, and does not ask for what it refuses. curl waits
# a second by itself, so the interim answer is looked for and the bytes sent are counted.
expect() {
  [[ $SIDE == through ]] || return 0
  local got interim
  body_of 1500000 >"$scratch/large"
  got="$(curl --silent --noproxy '*' --max-time 20 -H "$bearer" -H "$json" \
    -H 'Expect: 100-continue' --data-binary "@$scratch/large" -o /dev/null \
    -D "$scratch/head" --write-out '%{http_code}' "$chat")" || got="curl error $?"
  interim="$(grep -c '^HTTP/1.1 100 ' "$scratch/head" || true)"
  said "Expect: asked for the body" '200 interim=1' "$got interim=$interim"
  got="$(curl --silent --noproxy '*' --max-time 20 -H "authorization: Bearer wrong" -H "$json" \
    -H 'Expect: 100-continue' --expect100-timeout 15 --data-binary "@$scratch/large" \
    -o /dev/null --write-out '%{http_code} sent=%{size_upload}' "$chat")" || got="curl error $?"
  said "Expect: not asked when refused" '401 sent=0' "$got"
}

# The same head as GET would have, and nothing after it.
head_of_models() {
  [[ $SIDE == through ]] || return 0
  local got length
  length="$(curl --silent --noproxy '*' -H "$bearer" "$OPENAI_BASE_URL/models" | wc -c)"
  got="$(curl --silent --noproxy '*' --max-time 20 --head -H "$bearer" --output "$scratch/head" \
    --write-out '%{http_code} body=%{size_download}' "$OPENAI_BASE_URL/models")" ||
    got="curl error $?"
  got+=" $(grep -i '^content-length:' "$scratch/head" | tr -d '\r' | tr -s ' ' || true)"
  said "HEAD models" "200 body=0 content-length: $length" "$got"
}

readonly whole='200 body=*'
body_of 1500000 >"$scratch/large"
post both "whole call" "$whole x1 up=*" -d "{\"model\":\"ok\",$hello}"
post both "answer of 64 KiB" '200 body=65536:* x1 up=*' -d "{\"model\":\"big-64k\",$hello}"
post both "Expect: 1.5 MB body" "$whole x1 up=15000*" -H 'Expect: 100-continue' \
  --data-binary "@$scratch/large"
post both "chunked upload" "$whole x1 up=*" -H 'Transfer-Encoding: chunked' \
  -d "{\"model\":\"ok\",$hello}"
post both "chunked upload of 1.5 MB" "$whole x1 up=15000*" -H 'Transfer-Encoding: chunked' \
  -H 'Expect:' --data-binary "@$scratch/large"
post both "HTTP/1.0" "$whole x1 up=*" --http1.0 -d "{\"model\":\"ok\",$hello}"
post both "upstream 400" '400 code=invalid_value message x1 up=*' -d "{\"model\":\"s400\",$hello}"
post both "upstream 429" '429 code=rate_limit_exceeded message x1 up=*' \
  -d "{\"model\":\"s429\",$hello}"
post both "upstream 503" '503 code=overloaded message x1 up=*' -d "{\"model\":\"s503\",$hello}"
post both "answer cut in its body" 'curl error 18 x1 up=*' -d "{\"model\":\"cut-big\",$hello}"
keep_alive
expect

asked both "stream" "$whole x1 up=*" ok
asked both "stream of one byte a write" "$whole x1 up=*" stream-utf8
asked both "stream with lines of CR LF" "$whole x1 up=*" stream-crlf
asked both "stream with an event of 1 MiB" "$whole x1 up=*" stream-giant-1024
asked both "compressed stream" "$whole x1 up=*" stream-gzip
asked both "error within a stream" '200 code=server_error message x1 up=*' stream-err-mid
asked both "503 to a stream" '503 code=overloaded message x1 up=*' s503
asked through "stream to HTTP/1.0" "$whole x1 up=*" ok --http1.0
# Between two events the gateway can say what happened, and before the first word it still has a
# status for it.
cut='curl error 18' first='200 code=overloaded message'
if [[ $SIDE == through ]]; then
  cut='200 code=upstream_cut message' first='503 code=overloaded message'
fi
why=told asked both "cut stream" "$cut x1 up=*" stream-cut-3
why=status asked both "error as the first event" "$first x1 up=*" stream-err-first
unasked "stream that asks for no usage" "$whole x1"
messages both "message" "$whole x1 up=*" "{\"model\":\"ok\",\"max_tokens\":9,$hello}"
messages both "stream of a message" "$whole x1 up=*" \
  "{\"model\":\"claude-haiku-4-5\",\"max_tokens\":9,\"stream\":true,$hello}"
messages both "the same, cut inside an event" 'curl error 18 x1 up=*' \
  "{\"model\":\"stream-cut-in-event\",\"max_tokens\":9,\"stream\":true,$hello}"

check through "401 without a key" '401 code=invalid_api_key message x0 up=-' \
  -H "$json" -d "{\"model\":\"ok\",$hello}" "$chat"
check through "401 with a wrong key" '401 code=invalid_api_key message x0 up=-' \
  -H 'authorization: Bearer wrong' -H "$json" -d "{\"model\":\"ok\",$hello}" "$chat"
check through "key as x-api-key" "$whole x1 up=*" \
  -H "x-api-key: $OPENAI_API_KEY" -H "$json" -d "{\"model\":\"ok\",$hello}" "$chat"
post through "404 unknown model" '404 code=model_not_found message x0 up=-' \
  -d "{\"model\":\"nobody-serves-this\",$hello}"
post through "400 no model" '400 code=model_missing message x0 up=-' -d "{$hello}"
post through "400 malformed JSON" '400 code=invalid_request message x0 up=-' \
  -d '{"model":"ok","messages":['
post through "415 compressed request" '415 code=unsupported_media_type message x0 up=-' \
  -H 'content-encoding: gzip' -d "{\"model\":\"ok\",$hello}"
post through "upstream 401 is ours" '502 code=upstream_auth message x1 up=*' \
  -d "{\"model\":\"s401\",$hello}"
check through "405 GET chat" '405 code=method_not_allowed message x0 up=-' -H "$bearer" "$chat"
check through "404 no such route" '404 code=not_found message x0 up=-' \
  -H "$bearer" "$OPENAI_BASE_URL/nothing"
check through "GET models" '200 body=* x0 up=-' -H "$bearer" "$OPENAI_BASE_URL/models"
head_of_models
check through "GET models without a key" '401 code=invalid_api_key message x0 up=-' \
  "$OPENAI_BASE_URL/models"

if [[ $MODE == all ]]; then
  body_of 20000000 >"$scratch/large"
  post both "body of 20 MB" "$whole x1 up=200000*" --data-binary "@$scratch/large"
  post both "answer of 5 MiB" '200 body=5242880:* x1 up=*' -d "{\"model\":\"big-5m\",$hello}"
  body_of 40000000 >"$scratch/large"
  post through "413 body of 40 MB" '413 code=request_too_large message x0 up=-' -H 'Expect:' \
    --data-binary "@$scratch/large"
fi
