#!/usr/bin/env bash
# One client's checks, directly at a stand-in and through a gateway in front of it; started by
# run.sh, once for each client, so that they can run beside each other: pair.sh NAME COMMAND…
#
# Both get free loopback ports and are ended by their ids. Where to call is told in the variables
# of the SDKs. The lines that COMMAND prints have client, check, side, expected (a pattern), got
# and, where the sides may differ, the reason of differences.txt, with tabs between; they go into
# $SCRATCH/NAME/results. A client that ends early has failed, whatever it printed.
#
# Where $CERTIFICATES names a folder it is the quick checks alone, through a gateway that speaks TLS
# with a certificate that the folder's own CA has signed.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
name="$1"
shift
scratch="$SCRATCH/$name"
certificates="${CERTIFICATES:-}"
readonly here name scratch certificates
mkdir -p "$scratch"

# The example key of README.md, one that may spend a dollar, one that may spend nothing.
readonly key=tg-example-key budget_key=tg-example-key-of-a-dollar broke_key=tg-example-key-of-none
digest() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
# Ports are tried below the range the kernel hands out by itself.
readonly port_first=10000 port_count=20000 port_tries=10
# A start takes milliseconds; a loaded machine gets 20 s of 0.1 s polls.
readonly polls=200
# All checks of one side: several times what they take.
readonly client_limit=600

standin_pid="" tollgate_pid="" client_pid=""
end_everything() {
  local pid
  for pid in "$client_pid" "$tollgate_pid" "$standin_pid"; do
    [[ -z "$pid" ]] || kill "$pid" 2>/dev/null || true
  done
  wait 2>/dev/null || true
}
trap end_everything EXIT
trap 'exit 130' INT TERM

fetch() { curl --silent --fail --noproxy '*' --max-time 5 --output /dev/null "$@"; }

# until_true COMMAND…: polls; false if it does not come true in time.
until_true() {
  local poll
  for ((poll = 0; poll < polls; poll++)); do
    if "$@"; then return 0; fi
    sleep 0.1
  done
  return 1
}

free_port() {
  local port
  while :; do
    port=$((port_first + (RANDOM * 32768 + RANDOM) % port_count))
    # Refused means that nobody listens there.
    if ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return 0
    fi
  done
}

standin_ready() {
  kill -0 "$standin_pid" 2>/dev/null || return 0
  grep -q '^standin listening on ' "$scratch/standin.out"
}

start_standin() {
  : >"$scratch/standin.out"
  "$STANDIN_BINARY" --scenarios "$here/scenarios" \
    >"$scratch/standin.out" 2>"$scratch/standin.err" &
  standin_pid=$!
  until_true standin_ready || true
  provider="$(sed -n 's/^standin listening on //p' "$scratch/standin.out")"
  [[ -n "$provider" ]] || { cat "$scratch/standin.err" >&2; echo "no stand-in" >&2; exit 1; }
}

write_config() {
  local tls=""
  [[ -z "$certificates" ]] ||
    tls="tls = { cert_file = \"$certificates/cert.pem\", key_file = \"$certificates/key.pem\" }"
  cat >"$scratch/tollgate.toml" <<TOML
state_dir = "$scratch/state"

[listen]
data = "127.0.0.1:$data_port"
admin = "127.0.0.1:$admin_port"
$tls

# None of the pool's connections may end by age while a check counts those that end; a heartbeat
# has to come before a client's patience of two seconds is over, and a client that closes its
# socket has to be taken for gone while the check of it looks.
[deadlines]
pooled = "1h"
half_closed = "1s"
heartbeat = "1s"

# A client that retries is to be seen retrying, and no call may change what the next one gets.
[retry]
attempts = 1

[breaker]
failures = 15
window = "1s"
cooldown = "0s"

[[provider]]
name = "standin"
kind = "openai"
base_url = "http://$provider/v1"
credentials = [{ name = "main", key = "\${STANDIN_KEY}" }]
models = ["ok*", "s4*", "s5*", "hang", "cut-*", "slow-*", "big-*", "stream-*"]

[[provider]]
name = "anthropic"
kind = "anthropic"
base_url = "http://$provider"
credentials = [{ name = "main", key = "\${STANDIN_KEY}" }]
models = ["claude-haiku-4-5", "claude-*", "cc-*", "ok*", "s4*", "s5*", "hang", "cut-*", "big-*", "stream-*"]

[alias]
fast = "standin/ok"

[[key]]
name = "clients"
sha256 = "$(digest "$key")"

[[key]]
name = "dollar"
sha256 = "$(digest "$budget_key")"
budget_total = "1.00"

[[key]]
name = "broke"
sha256 = "$(digest "$broke_key")"
budget_total = "0.00"

# For the models of the stand-in, which no list knows: without a price no budget lets them pass.
[price.fallback]
input = 1000000
output = 1000000
TOML
}

# Ready, or gone.
gateway_settled() {
  ! kill -0 "$tollgate_pid" 2>/dev/null || fetch "http://127.0.0.1:$admin_port/readyz"
}

# A port can be taken between the look and the bind; then the next one is tried.
start_gateway() {
  local try
  for ((try = 0; try < port_tries; try++)); do
    data_port="$(free_port)" admin_port="$(free_port)"
    [[ "$data_port" != "$admin_port" ]] || continue
    write_config
    STANDIN_KEY=sk-standin "$TOLLGATE_BINARY" serve "$scratch/tollgate.toml" \
      </dev/null >"$scratch/tollgate.out" 2>&1 &
    tollgate_pid=$!
    if until_true gateway_settled && kill -0 "$tollgate_pid" 2>/dev/null; then
      return 0
    fi
    kill "$tollgate_pid" 2>/dev/null || true
    wait "$tollgate_pid" 2>/dev/null || true
    tollgate_pid=""
  done
  cat "$scratch/tollgate.out" >&2
  echo "the gateway does not start" >&2
  exit 1
}

# checks SIDE BASE COMMAND…: run in the background and waited for, so that a signal ends it at once.
checks() {
  local side="$1" base="$2"
  shift 2
  OPENAI_BASE_URL="$base/v1" OPENAI_API_KEY="$key" ANTHROPIC_BASE_URL="$base" \
    ANTHROPIC_AUTH_TOKEN="$key" BUDGET_KEY="$budget_key" BROKE_KEY="$broke_key" \
    STANDIN="http://$provider" CONFIG="$scratch/tollgate.toml" FOLDER="$scratch" SIDE="$side" \
    no_proxy='*' NO_PROXY='*' \
    timeout --foreground "$client_limit" "$@" </dev/null \
    >>"$scratch/results" 2>>"$scratch/errors" &
  client_pid=$!
  wait "$client_pid" ||
    printf '%s\tall checks\t%s\trun to their end\tended early\n' "$name" "$side" \
      >>"$scratch/results"
  client_pid=""
}

: >"$scratch/results"
start_standin
start_gateway
if [[ -z "$certificates" ]]; then
  checks direct "http://$provider" "$@"
  checks through "http://127.0.0.1:$data_port" "$@"
else
  ca="$certificates/ca.pem"
  MODE=quick CA_FILE="$ca" SSL_CERT_FILE="$ca" NODE_EXTRA_CA_CERTS="$ca" \
    checks through "https://127.0.0.1:$data_port" "$@"
fi
# A gateway that died on the way has failed, even if it was the last check that killed it.
kill -0 "$tollgate_pid" 2>/dev/null ||
  printf '%s\tgateway\tthrough\tstill running\tgone\n' "$name" >>"$scratch/results"
