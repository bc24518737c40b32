#!/usr/bin/env bash
# How long a node with many keys takes from its start to `ready`: after a clean end, and after
# `kill -9` under load.
#
# Makes a state in which each key has every limit, two budgets and one settled call (many-keys).
# A start is timed from before the process exists to the line it prints when every shard takes
# connections; its CPU is that of all threads until then, which tells a slow start from a busy
# machine. Clean: started and ended with SIGTERM, in turn. Killed: a closed loop of calls, and
# the kill at a random moment of it; the next start finds live slots, up to a second of log behind
# the checkpoint, and a state store that was not closed. Every start reads files the kernel still
# has in memory. Prints Markdown lines for RESULTS.md; nothing is installed or left over.
set -euo pipefail

keys=100000 used= runs=11 seconds=1 connections=16 shards=2 bin=target/release keep=
usage() {
    cat <<'TEXT'
usage: loadtest/cold_start.sh [options]
  --keys N             keys of the node (default 100000)
  --used N             of them that have settled a call before (default all)
  --runs N             starts of each kind (default 11)
  --seconds S          load before each kill, at least; up to twice that (default 1)
  --connections N      clients of the load (default 16)
  --shards N           shards of the node (default 2)
  --bin DIR            where tollgate, loadtest, standin and many-keys are (default target/release)
  --keep DIR           keep state, configuration and the lines of every start there, on a disk
TEXT
}
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    esac
    [ $# -ge 2 ] || { echo "cold_start.sh: $1 needs a value" >&2; exit 2; }
    case $1 in
    --keys) keys=$2 ;;
    --used) used=$2 ;;
    --runs) runs=$2 ;;
    --seconds) seconds=$2 ;;
    --connections) connections=$2 ;;
    --shards) shards=$2 ;;
    --bin) bin=$2 ;;
    --keep) keep=$2 ;;
    *) echo "cold_start.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
    esac
    shift 2
done
for binary in tollgate loadtest standin many-keys; do
    [ -x "$bin/$binary" ] || {
        echo "cold_start.sh: $bin/$binary is missing:" \
            "cargo build --release -p tollgate -p loadtest -p gateway-tests" >&2
        exit 2
    }
done

work=${keep:-$(mktemp -d)}
mkdir -p "$work"
slabs=$(mktemp -d /dev/shm/tollgate-cold-start.XXXXXX)
standin_pid='' gateway_pid='' mix_pid=''
stop() { # only what this script started, by its id
    [ -n "$1" ] || return 0
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
finish() {
    stop "$mix_pid"
    stop "$gateway_pid"
    stop "$standin_pid"
    rm -rf "$slabs"
    [ -n "$keep" ] || rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# --- the node

used=${used:-$keys}
"$bin/many-keys" "$work/state" "$slabs" "$keys" "$used"
"$bin/standin" --listen 127.0.0.1:0 --tally 0 >"$work/standin.txt" &
standin_pid=$!
until upstream=$(grep -o '127\.0\.0\.1:[0-9]*' "$work/standin.txt"); do
    kill -0 "$standin_pid" || exit 1
    sleep 0.05
done
cat >"$work/tollgate.toml" <<CONF
state_dir = "$work/state"
[listen]
data = "127.0.0.1:0"
admin = "127.0.0.1:0"
[shards]
count = $shards
[ledger]
slab_dir = "$slabs"
[price]
file = "prices.json"
[[provider]]
name = "standin"
kind = "openai"
base_url = "http://$upstream/v1"
credentials = [{ name = "a", key = "file:$work/upstream-key" }]
models = ["*"]
[[key]]
name = "load"
sha256 = "$(printf %s caller | sha256sum | cut -d' ' -f1)"
budget_total = "1000.00"
CONF
printf %s sk-upstream >"$work/upstream-key"
cat >"$work/prices.json" <<'JSON'
{"version": 1, "models": [{"provider": "standin", "model": "ok",
 "tiers": [{"above_input": 0, "input": 250000, "output": 2000000}]}]}
JSON
mkfifo "$work/err"
: >"$work/lines.txt" >"$work/starts.tsv"

now_us() { printf '%s\n' "${EPOCHREALTIME/[.,]/}"; }

start() { # kind; sets gateway_pid and data
    local from until line cpu lines=''
    from=$(now_us)
    "$bin/tollgate" serve --no-pin "$work/tollgate.toml" 2>"$work/err" &
    gateway_pid=$!
    exec 3<"$work/err"
    while :; do
        IFS= read -r line <&3 || { echo "cold_start.sh: no start: $lines" >&2; exit 1; }
        case $line in
        ready*) until=$(now_us); break ;;
        data*) data=${line##*http://} ;;
        esac
        lines+=$line$'\n'
    done
    cpu=$(awk -v hz="$(getconf CLK_TCK)" \
        '{ sub(/^.*\) /, ""); print ($12 + $13) * 1000000 / hz }' "/proc/$gateway_pid/stat")
    printf '%s %s us\n%s' "$1" $((until - from)) "$lines" >>"$work/lines.txt"
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" $((until - from)) "$cpu" \
        "$(grep -oE '[0-9]+ of them replayed' <<<"$lines" | cut -d' ' -f1)" \
        "$(grep ^recovered <<<"$lines" | grep -oE '[0-9]+ (settled|confirmed|charged|released)' |
            awk '{ n += $1 } END { print n + 0 }')" >>"$work/starts.tsv"
}
ended() { # what it says on its way out must not be left in the pipe
    cat <&3 >>"$work/lines.txt"
    exec 3<&-
    wait "$gateway_pid"
}

# --- clean

start first
for _ in $(seq "$runs"); do
    kill "$gateway_pid"
    ended
    start clean
done

# --- killed

for run in $(seq "$runs"); do
    "$bin/loadtest" mix --target "$data" --key caller --connections "$connections" \
        --seconds 600 >"$work/mix.txt" 2>&1 &
    mix_pid=$!
    sleep "$(awk -v s="$seconds" -v r="$RANDOM" 'BEGIN { print s * (1 + r / 32768) }')"
    kill -9 "$gateway_pid"
    ended 2>/dev/null || true
    stop "$mix_pid"
    mix_pid=''
    start killed
    echo "start $run of $runs after a kill, load average $(cut -d' ' -f1 /proc/loadavg)" >&2
done
kill "$gateway_pid"
ended
gateway_pid=''

# --- medians

echo
echo "$keys keys, $used of them used, $shards shards, state on $(stat -f -c %T "$work"), $(date -u +%Y-%m-%d)"
echo
echo '| start | runs | ms, median | least | most | CPU-ms, median | replayed, median | recovered, median |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|'
column() { awk -F'\t' -v kind="$1" -v at="$2" '$1 == kind { print $at }' "$work/starts.tsv" | sort -n; }
for kind in clean killed; do
    median() { column "$kind" "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
    ms() { awk -v us="$1" 'BEGIN { printf "%.0f", us / 1000 }'; }
    echo "| $kind | $(column "$kind" 2 | wc -l) | $(ms "$(median 2)") |" \
        "$(ms "$(column "$kind" 2 | head -1)") | $(ms "$(column "$kind" 2 | tail -1)") |" \
        "$(ms "$(median 3)") | $(median 4) | $(median 5) |"
done
