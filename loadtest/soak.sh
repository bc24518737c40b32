#!/usr/bin/env bash
# Mixed traffic with stated faults against a running gateway; fails when something is left over.
#
# Starts a stand-in and tollgate, sends `loadtest mix` for some time and samples resident memory,
# descriptors and threads of the gateway once a second. Passes only if the mix saw expected
# outcomes alone, every answer of 200 with the bytes the stand-in sends, memory at the end is at
# most 2 % above that at 20 s, and once the clients are gone the descriptors are those of before,
# the gauges are 0, no buffer is missing, no panic was counted, the gateway is idle and ends with
# exit code 0. Bodies of a megabyte come and go with their memory, so each of the two figures is the
# median of nine samples: around 20 s, and the last. Over TLS the heap takes longer to find its
# size, a minute or so: --from moves the first figure. Memory that is the process's alone is printed
# beside it: the ledger's slabs, which are shared and of one size, would hide a part of its growth.
# Prints the figures; nothing is installed or left over.
set -euo pipefail

seconds=60 connections=200 shards=2 driver=uring faults=30 bin=target/release tollgate= keep=
here=$(cd "$(dirname "$0")" && pwd)
growth=2 from=20 pooled=5s classes=faults tls=
usage() {
    cat <<'TEXT'
usage: loadtest/soak.sh [options]
  --seconds S          seconds of load, at least 30 (default 60)
  --connections N      clients at once (default 200)
  --shards N           shards of the gateway (default 2)
  --driver D           uring or epoll (default uring)
  --faults F           faulty part of the traffic, as `loadtest mix` takes it (default 30)
  --tls                TLS on both sides
  --classes LIST       files of loadtest/mixes, of faults and streams (default faults)
  --growth P           percent by which memory may grow (default 2)
  --from S             seconds after which it may grow by no more than that (default 20)
  --pooled D           age of a pooled upstream connection (default 5s)
  --bin DIR            where loadtest, standin and tollgate are (default target/release)
  --tollgate PATH      the tollgate binary (default tollgate in --bin)
  --keep DIR           keep configuration, logs and samples there
TEXT
}
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    --tls) tls=1; shift; continue ;;
    esac
    [ $# -ge 2 ] || { echo "soak.sh: $1 needs a value" >&2; exit 2; }
    case $1 in
    --seconds) seconds=$2 ;;
    --connections) connections=$2 ;;
    --shards) shards=$2 ;;
    --driver) driver=$2 ;;
    --faults) faults=$2 ;;
    --classes) classes=$2 ;;
    --growth) growth=$2 ;;
    --from) from=$2 ;;
    --pooled) pooled=$2 ;;
    --bin) bin=$2 ;;
    --tollgate) tollgate=$2 ;;
    --keep) keep=$2 ;;
    *) echo "soak.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
    esac
    shift 2
done
[ "$seconds" -ge 30 ] || { echo "soak.sh: --seconds must be at least 30" >&2; exit 2; }
[ "$from" -ge 10 ] && [ "$from" -le $((seconds - 10)) ] || {
    echo "soak.sh: --from must be at least 10, and 10 below --seconds" >&2
    exit 2
}
tollgate=${tollgate:-$bin/tollgate}
command -v python3 >/dev/null || {
    echo "soak.sh: python3 is missing (Debian package python3-minimal)" >&2
    exit 2
}
for binary in "$bin/loadtest" "$bin/standin" "$tollgate"; do
    [ -x "$binary" ] || {
        echo "soak.sh: $binary is missing: cargo build --release -p tollgate -p loadtest" >&2
        exit 2
    }
done

work=${keep:-$(mktemp -d)}
mkdir -p "$work"
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
    [ -n "$keep" ] || rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

free_port() {
    python3 -c 'import socket
print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])'
}
get() { # port, path; the admin port closes after its answer
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET %s HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n' "$2" >&3
    cat <&3
    exec 3>&- 3<&-
}
wait_for() { # port, what
    local _
    for _ in $(seq 200); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return 0; fi
        sleep 0.05
    done
    echo "soak.sh: $2 does not listen on $1" >&2
    return 1
}
sum() { # series: over the shards
    get "$admin" /metrics | awk -v name="$1" '
        index($1, name) == 1 && (length($1) == length(name) || substr($1, length(name) + 1, 1) == "{") {
            sum += $2; seen = 1 }
        END { if (seen) printf "%d", sum; else print "missing" }'
}
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$gateway_pid/status"; }
private() { awk '/^RssAnon/ { print $2 }' "/proc/$gateway_pid/status"; }
threads() { awk '/^Threads/ { print $2 }' "/proc/$gateway_pid/status"; }
descriptors() { find "/proc/$gateway_pid/fd" -mindepth 1 2>/dev/null | wc -l; }
ticks() { awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$gateway_pid/stat"; }

standin=$(free_port) data=$(free_port) admin=$(free_port)
standin_tls=() mix_tls=() https=http toll_ca='' toll_listen=''
if [ -n "$tls" ]; then
    standin_tls=(--tls-dir "$work/tls") mix_tls=(--ca "$work/tls/ca.pem") https=https
    toll_ca="ca_file = \"$work/tls/ca.pem\""
    toll_listen="tls = { cert_file = \"$work/tls/chain.pem\", key_file = \"$work/tls/key.pem\" }"
fi
"$bin/standin" --listen "127.0.0.1:$standin" --tally 0 "${standin_tls[@]}" >"$work/standin.log" 2>&1 &
standin_pid=$!
wait_for "$standin" standin
printf %s sk-upstream >"$work/upstream-key"
cat >"$work/tollgate.toml" <<CONF
state_dir = "$work/state"
[listen]
data = "127.0.0.1:$data"
admin = "127.0.0.1:$admin"
$toll_listen
[shards]
count = $shards
driver = "$driver"
[deadlines]
pooled = "$pooled"
# A client that ended its side is known to be gone once a second heartbeat could not be written.
heartbeat = "2s"
# One credential gets all the faults there are: it must stay in use, or nothing else would be seen.
[retry]
backoff = "10ms"
backoff_max = "20ms"
[breaker]
failures = 0
cooldown = "0s"
[[provider]]
name = "standin"
kind = "openai"
$toll_ca
base_url = "$https://127.0.0.1:$standin/v1"
credentials = [{ name = "a", key = "file:$work/upstream-key" }]
models = ["*"]
[[provider]]
name = "claude"
kind = "anthropic"
$toll_ca
base_url = "$https://127.0.0.1:$standin"
credentials = [{ name = "a", key = "file:$work/upstream-key" }]
[[key]]
name = "soak"
sha256 = "$(printf %s caller | sha256sum | cut -d' ' -f1)"
CONF
"$tollgate" serve "$work/tollgate.toml" >"$work/tollgate.log" 2>&1 &
gateway_pid=$!
wait_for "$data" tollgate
wait_for "$admin" "the admin port"

# One exchange a shard and some time: what a first call allocates is there before.
"$bin/loadtest" mix --target "127.0.0.1:$data" --key caller --connections "$connections" \
    --requests $((connections * 4)) "${mix_tls[@]}" >/dev/null
at_rest() { # seconds to wait, descriptors: whether all is as before the clients came
    local _
    sleep 1.5 # the pool's gauge is set once a second
    for _ in $(seq $(($1 * 5))); do
        if [ "$(sum tollgate_connections_open)" = 0 ] && [ "$(sum tollgate_upstream_idle)" = 0 ] &&
            { [ -z "$2" ] || [ "$(descriptors)" -eq "$2" ]; }; then return 0; fi
        sleep 0.2
    done
    return 1
}
at_rest 15 '' || { echo "soak.sh: the gateway does not come to rest before the run" >&2; exit 1; }
before=$(descriptors) threads_before=$(threads) rss_before=$(rss)

files=()
IFS=, read -ra names <<<"$classes"
for name in "${names[@]}"; do files+=(--classes "$here/mixes/$name.toml"); done
"$bin/loadtest" mix --target "127.0.0.1:$data" --key caller --connections "$connections" \
    "${files[@]}" --check --messages-prefix claude/ --seconds "$seconds" --faults "$faults" \
    "${mix_tls[@]}" >"$work/mix.txt" 2>"$work/mix.err" &
mix_pid=$!
start=$(date +%s%N) bad=0 second=0
: >"$work/samples"
while [ "$second" -lt "$seconds" ]; do
    second=$((second + 1))
    rest=$((start + second * 1000000000 - 100000000 - $(date +%s%N)))
    [ "$rest" -le 0 ] || sleep "$(printf '%d.%09d' $((rest / 1000000000)) $((rest % 1000000000)))"
    echo "$second $(rss) $(descriptors) $(threads) $(private)" >>"$work/samples"
done
mix_code=0
wait "$mix_pid" || mix_code=$?
mix_pid=''

fail() { echo "FAIL: $1"; bad=1; }
around() { # first second, last second, column
    awk -v from="$1" -v to="$2" -v at="$3" '$1 >= from && $1 <= to { print $at }' "$work/samples" |
        sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
early=$((from - 4)) late=$((from + 4))
rss_from=$(around $early $late 2) rss_end=$(around $((seconds - 8)) "$seconds" 2)
at_rest 20 "$before" || fail "the gateway does not come to rest when the clients are gone"
after=$(descriptors)
ticks_before=$(ticks)
sleep 2
idle=$(($(ticks) - ticks_before))
echo "driver $driver, $shards shards, $connections connections, $seconds s, faults $faults of $classes${tls:+, TLS on both sides}"
awk 'NR == 1 || /requests|answered/' "$work/mix.txt" | head -3
echo "resident before the run  $rss_before KiB"
echo "resident at $from s         $rss_from KiB (sample $(around "$from" "$from" 2))"
echo "resident at $seconds s         $rss_end KiB (sample $(around "$seconds" "$seconds" 2))"
echo "resident after           $(rss) KiB"
echo "of it private            $(around $early $late 5) KiB at $from s," \
    "$(around $((seconds - 8)) "$seconds" 5) KiB at $seconds s"
echo "descriptors              $before before, $(around "$from" "$from" 3) at $from s," \
    "$(around "$seconds" "$seconds" 3) at $seconds s, $after after"
echo "threads                  $threads_before before, $(around "$from" "$from" 4) at $from s," \
    "$(around "$seconds" "$seconds" 4) at $seconds s, $(threads) after"
echo "idle CPU                 $idle ticks of 10 ms in 2 s"

[ "$mix_code" -eq 0 ] || { cat "$work/mix.txt" "$work/mix.err"; fail "unexpected outcomes"; }
[ $((rss_end * 100)) -le $((rss_from * (100 + growth))) ] || fail "memory grew above $growth %"
[ "$after" -eq "$before" ] || fail "$((after - before)) descriptors were left over"
# With TLS one more may come and stay: it reads the files of certificates every ten seconds.
[ "$(threads)" -le $((threads_before + (${#tls} > 0))) ] || fail "threads were left over"
for series in connections_open held_bytes buffers_lent panics_total; do
    value=$(sum "tollgate_$series")
    [ "$value" = 0 ] || fail "tollgate_$series is $value"
done
# A tick of 100 ms and a sweep a second cost some; a loop that spins costs a core.
[ "$idle" -le 10 ] || fail "the gateway is not idle"
kill "$gateway_pid"
code=0
wait "$gateway_pid" || code=$?
gateway_pid=''
[ "$code" -eq 0 ] || fail "the gateway ended with exit code $code"
for secret in caller sk-upstream; do
    ! grep -qF -- "$secret" "$work/tollgate.log" || fail "a key is in the log"
done
[ "$bad" -ne 0 ] || echo "passed"
exit "$bad"
