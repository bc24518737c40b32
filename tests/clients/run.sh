#!/usr/bin/env bash
# Real clients against the running binary: tests/clients/run.sh [TOLLGATE STANDIN] [--quick|--full]
#
# Starts a stand-in provider and a gateway on free loopback ports, lets each client make its calls
# through the gateway and, where the stand-in can answer them, directly at the stand-in, and
# demands the expected result of both and the same of both. Prints one table; the exit code is 1
# if any check failed. Without paths it builds and takes the pair of target/release, if both are
# there, else of target/debug. `--full` adds what is large or waits for seconds.
#
# Deliberately not: faults below HTTP, load, speed. Ends what it started by its id.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../.." && pwd)"
readonly here root

# The example key of README.md and its digest.
readonly key=tg-example-key
readonly digest=25aeda2f87ab9341ed6436c2232885d8d196ad8c01718a188b8f0a15f881fcf0
# Ports are tried below the range the kernel hands out by itself.
readonly port_first=10000 port_count=20000 port_tries=10
# A start takes milliseconds; a loaded machine gets 20 s of 0.1 s polls.
readonly polls=200
# One client's checks, quick or full: several times what they take.
readonly client_limit=300

usage() {
  echo "usage: run.sh [TOLLGATE STANDIN] [--quick|--full]" >&2
  exit 2
}

mode=quick
paths=()
for argument in "$@"; do
  case "$argument" in
    quick | --quick) mode=quick ;;
    full | --full) mode=full ;;
    -*) usage ;;
    *) paths+=("$argument") ;;
  esac
done

scratch="$(mktemp -d)"
standin_pid="" tollgate_pid=""
end_everything() {
  [[ -z "$tollgate_pid" ]] || kill "$tollgate_pid" 2>/dev/null || true
  [[ -z "$standin_pid" ]] || kill "$standin_pid" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$scratch"
}
trap end_everything EXIT
trap 'exit 130' INT TERM

# Takes the two given paths, or builds the default pair, so that none is older than its source.
binaries() {
  local target="${CARGO_TARGET_DIR:-$root/target}" profile=debug
  case ${#paths[@]} in
    2) tollgate="${paths[0]}" standin="${paths[1]}" ;;
    0)
      [[ ! -x "$target/release/tollgate" || ! -x "$target/release/standin" ]] || profile=release
      tollgate="$target/$profile/tollgate" standin="$target/$profile/standin"
      local flags=(--quiet --locked -p tollgate -p loadtest)
      [[ $profile == debug ]] || flags+=(--release)
      (cd "$root" && cargo build "${flags[@]}")
      ;;
    *) usage ;;
  esac
  local path
  for path in "$tollgate" "$standin"; do
    [[ -x "$path" ]] || { echo "no such program: $path" >&2; exit 2; }
  done
}

# Below, nothing goes through a proxy of the environment except what pip fetches.
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
  "$standin" >"$scratch/standin.out" 2>"$scratch/standin.err" &
  standin_pid=$!
  until_true standin_ready || true
  provider="$(sed -n 's/^standin listening on //p' "$scratch/standin.out")"
  [[ -n "$provider" ]] || { cat "$scratch/standin.err" >&2; echo "no stand-in" >&2; exit 1; }
}

write_config() {
  cat >"$scratch/tollgate.toml" <<TOML
state_dir = "$scratch/state"

[listen]
data = "127.0.0.1:$data_port"
admin = "127.0.0.1:$admin_port"

# None of the pool's connections may end by age while a check counts those that end.
[deadlines]
pooled = "1h"

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
models = ["claude-*", "ok*", "s4*", "s5*", "hang", "cut-*", "stream-*"]

[alias]
fast = "standin/ok"

[[key]]
name = "clients"
sha256 = "$digest"
TOML
}

# Ready, or gone.
gateway_settled() {
  ! kill -0 "$tollgate_pid" 2>/dev/null || fetch "http://127.0.0.1:$data_port/readyz"
}

# A port can be taken between the look and the bind; then the next one is tried.
start_gateway() {
  local try command
  for ((try = 0; try < port_tries; try++)); do
    data_port="$(free_port)" admin_port="$(free_port)"
    [[ "$data_port" != "$admin_port" ]] || continue
    write_config
    # Every other try is for a binary that knows no command and takes the file alone.
    command=(serve)
    ((try % 2 == 0)) || command=()
    STANDIN_KEY=sk-standin "$tollgate" "${command[@]}" "$scratch/tollgate.toml" \
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

# checks NAME COMMAND…: runs a client's checks directly and through. They print lines of
# client, check, side, expected (a pattern) and got, with tabs between; a client that ends early
# has failed, whatever it printed.
checks() {
  local name="$1" side base
  shift
  for side in direct through; do
    base="http://$provider/v1"
    [[ $side == direct ]] || base="http://127.0.0.1:$data_port/v1"
    OPENAI_BASE_URL="$base" OPENAI_API_KEY="$key" \
      ANTHROPIC_BASE_URL="${base%/v1}" ANTHROPIC_AUTH_TOKEN="$key" STANDIN="http://$provider" \
      SIDE="$side" MODE="$mode" no_proxy='*' NO_PROXY='*' \
      timeout "$client_limit" "$@" </dev/null >>"$scratch/results" ||
      printf '%s\tall checks\t%s\trun to their end\tended early\n' "$name" "$side" \
        >>"$scratch/results"
  done
}

# The client's own words for a part that cannot run here.
skip() {
  printf '%s\tall checks\tskip\t-\t%s\n' "$1" "$2" >>"$scratch/results"
  echo "skipped: $1: $2"
}

python_client() {
  local python="$scratch/venv/bin/python"
  if ! command -v python3 >/dev/null; then
    skip python "python3 is missing"
  elif ! python3 -m venv "$scratch/venv" >"$scratch/venv.log" 2>&1; then
    tail -3 "$scratch/venv.log"
    skip python "python3 has no working venv"
  elif ! "$python" -m pip install --quiet --disable-pip-version-check --no-input \
    --requirement "$here/requirements.txt" >"$scratch/venv.log" 2>&1; then
    tail -3 "$scratch/venv.log"
    skip python "its packages cannot be installed"
  else
    checks openai-python "$python" "$here/openai_python.py"
    checks anthropic-python "$python" "$here/anthropic_python.py"
    PATH="$scratch/venv/bin:$PATH" checks docs "$here/docs.sh" python
  fi
}

# One row a check. What was expected must have been seen, and the same on both sides, unless the
# check itself expects one thing directly and another through the gateway.
table() {
  awk -F '\t' '
    function glob(pattern) {
      gsub(/[][().+^$|{}?\\]/, "\\\\&", pattern)
      gsub(/\*/, ".*", pattern)
      return "^" pattern "$"
    }
    {
      row = $1 FS $2
      if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
      if ($3 == "skip") { note[row] = "skipped: " $5; next }
      got[row, $3] = $5
      expected[row, $3] = $4
      if ($5 !~ glob($4)) wrong[row] = wrong[row] "\n    " $3 ": expected " $4 ", got " $5
    }
    END {
      form = "%-13s | %-30s | %-83s | %-83s | %s\n"
      printf form, "client", "check", "direct", "through", "verdict"
      for (at = 1; at <= rows; at++) {
        row = order[at]
        split(row, part, FS)
        direct = (row, "direct") in got ? got[row, "direct"] : "-"
        through = (row, "through") in got ? got[row, "through"] : "-"
        if (row in note) verdict = note[row]
        else if (row in wrong || through == "-") verdict = "FAILED"
        else if (direct == "-" || direct == through) verdict = "ok"
        else if (expected[row, "direct"] != expected[row, "through"]) verdict = "ok, as expected"
        else verdict = "FAILED: differs"
        if (verdict ~ /^ok/) good++
        else if (verdict ~ /^FAILED/) bad++
        printf form, part[1], part[2], direct, through, verdict
        if (row in wrong) print substr(wrong[row], 2)
      }
      printf "%d ok, %d failed\n", good, bad
      exit bad > 0 || good == 0
    }' "$scratch/results"
}

command -v curl >/dev/null || { echo "curl is missing" >&2; exit 2; }
binaries
: >"$scratch/results"
start_standin
start_gateway
checks curl bash "$here/curl.sh"
checks docs bash "$here/docs.sh" sh
python_client
# A gateway that died on the way has failed, even if it was the last check that killed it.
kill -0 "$tollgate_pid" 2>/dev/null ||
  printf 'tollgate\tstill running\tthrough\tyes\tno\n' >>"$scratch/results"
table || { echo "--- the gateway said:"; tail -20 "$scratch/tollgate.out"; exit 1; }
