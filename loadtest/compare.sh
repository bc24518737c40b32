#!/usr/bin/env bash
# nginx, the floor and tollgate on the same core in turn, CPU time per request of each.
#
# Each round runs every server once, in an order that rotates, so that what else the machine does
# falls on all of them alike. The server has core 0; core 1 has the rig, which plays clients and
# upstream on one thread (at a rate: the mix and the stand-in). CPU is the run time of all threads
# of the server from /proc (nanoseconds), divided by the answers the load got. A run in which the
# server did not have its core (busy below 0.95 of the time) is marked `~` and left out of the
# medians. Prints Markdown lines for RESULTS.md; nothing is installed or left over.
set -euo pipefail

rounds=10 seconds=4 warmup=1 connections=16 body_bytes=2048 bin=target/release tollgate=
servers=nginx,floor server_core=0 load_core=1 rate= keep= nice=0 group= tls= latency= spin=
usage() {
    cat <<'TEXT'
usage: loadtest/compare.sh [options]
  --servers LIST       of nginx, floor, tollgate, and direct: no server, the rig's own cost, which
                       is the ceiling of all other rows (default nginx,floor)
  --tollgate PATH      the tollgate binary; adds tollgate to the servers, with every limit on its key
                       and its ledger kept, and bare: the same without limits and without ledger
  --bin DIR            where loadtest and standin are (default target/release)
  --rounds N           rounds (default 10)
  --seconds S          measured seconds a run (default 4)
  --warmup S           seconds before that (default 1)
  --connections N      connections of the load (default 16)
  --body-bytes N       bytes of a request's body (default 2048)
  --rate R             requests a second instead of a closed loop; not with direct
  --latency            measure latencies in the closed loop too, for about 1 % of the load's time
  --spin               the rig never sleeps: it keeps its core beside other work, and no server has
                       to wake it, which spares each the same
  --server-core N      core of the server (default 0)
  --load-core N        core of load and stand-in (default 1)
  --nice N             niceness of server and load (negative needs root)
  --group N            put server and load into a session each and give the scheduling group of
                       either the niceness N, say -20 beside builds (negative needs root; left out
                       where it is not permitted). Where the kernel groups by session, --nice
                       ranks only within one. They get two groups, as the weight of one that runs
                       on both cores is split between them.
  --tls SIDES          TLS 1.3 with AES-128-GCM toward the upstream (upstream), or on the server's
                       listener too (both); without the floor, which knows none
  --keep DIR           keep configurations and reports there
TEXT
}
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    --latency) latency=1; shift; continue ;;
    --spin) spin=1; shift; continue ;;
    esac
    [ $# -ge 2 ] || { echo "compare.sh: $1 needs a value" >&2; exit 2; }
    case $1 in
    --servers) servers=$2 ;;
    --tollgate) tollgate=$2 servers+=,tollgate,bare ;;
    --bin) bin=$2 ;;
    --rounds) rounds=$2 ;;
    --seconds) seconds=$2 ;;
    --warmup) warmup=$2 ;;
    --connections) connections=$2 ;;
    --body-bytes) body_bytes=$2 ;;
    --rate) rate=$2 ;;
    --server-core) server_core=$2 ;;
    --load-core) load_core=$2 ;;
    --nice) nice=$2 ;;
    --group) group=$2 ;;
    --tls) tls=$2 ;;
    --keep) keep=$2 ;;
    *) echo "compare.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
    esac
    shift 2
done

if [ -n "$rate" ] && [[ ,$servers, == *,direct,* ]]; then
    echo "compare.sh: direct has no rate" >&2
    exit 2
fi

. "$(dirname "$0")/servers.sh"

# --- one run

mix() { # seconds
    (on_core "$load_core" "$bin/loadtest" mix --target "$address" --key "$key" \
        --connections "$connections" --body-bytes "$body_bytes" --seconds "$1" \
        --rate "$rate" --model "$model" "${mix_tls[@]}" --report json)
}

# The rig takes its place as the upstream, waits for the server, warms it and waits for a line.
start_rig() { # what it speaks to
    : >"$work/rig.log" # what the last one said must not be read as this one's
    on_core "$load_core" "$bin/loadtest" rig "$@" --upstream "$upstream" \
        --key "$key" --model "$model" --connections "$connections" --body-bytes "$body_bytes" \
        --warmup "$warmup" --seconds "$seconds" ${latency:+--latency} ${spin:+--spin} --hold \
        "${rig_tls[@]}" --report json <&4 >"$work/report" 2>"$work/rig.log" &
    rig_pid=$!
}
begin() { ticks_before=$(total_ticks "$server_pid") before=$(cpu_ns "$server_pid") at=$(date +%s%N); }
end() {
    wall=$(($(date +%s%N) - at)) cpu=$(($(cpu_ns "$server_pid") - before))
    ticks_after=$(total_ticks "$server_pid")
}

run() { # round, server
    local ticks_before='0 0' ticks_after='0 0' before cpu=0 at wall=1 report
    local address key=caller model=ok
    address=127.0.0.1:$(free_port)
    [ "$2" != tollgate ] && [ "$2" != bare ] || model=toll
    if [ -n "$rate" ]; then
        "start_$2"
        wait_for "$address" "$2"
        mix "$warmup" >/dev/null || true
        begin
        report=$(mix "$seconds") || true
        end
    elif [ "$2" = direct ]; then
        start_rig --direct
        echo >&4
        wait "$rig_pid" || true
        report=$(cat "$work/report")
    else
        start_rig --target "$address"
        rig_says 'rig upstream'
        "start_$2"
        rig_says warm
        begin
        echo >&4
        wait "$rig_pid" || true
        end
        report=$(cat "$work/report")
    fi
    rig_pid=''
    stop "$server_pid"
    server_pid=''
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$cpu" "$wall" \
        "$ticks_before" "$ticks_after" "${report:-null}" >>"$work/runs.tsv"
}

: >"$work/runs.tsv"
upstream=127.0.0.1:$(free_port)
if [ -n "$rate" ]; then
    on_core "$load_core" "$bin/standin" --listen "$upstream" --tally 0 "${standin_tls[@]}" >/dev/null &
    standin_pid=$!
    wait_for "$upstream" standin
else
    rm -f "$work/go"
    mkfifo "$work/go"
    exec 4<>"$work/go"
fi
IFS=, read -ra names <<<"$servers"
for round in $(seq "$rounds"); do
    for at in "${!names[@]}"; do
        run "$round" "${names[((at + round) % ${#names[@]})]}"
    done
    echo "round $round of $rounds, load average $(cut -d' ' -f1 /proc/loadavg)" >&2
done

# --- medians

python3 - "$work/runs.tsv" "$connections" "$body_bytes" "$seconds" "${rate:-}" <<'PY'
import json, statistics, sys

path, connections, body_bytes, seconds, rate = sys.argv[1:]
runs = {}
for line in open(path):
    turn, name, cpu_ns, wall_ns, before, after, report = line.rstrip("\n").split("\t", 6)
    report = json.loads(report) or {"answered": 0, "unexpected": 0, "requests": 0}
    answered = report["answered"]
    if not rate:  # the rig's own count, without what it took to start and to hear of its end
        wall_ns = report.get("seconds", 0) * 1e9 or 1
    if name == "direct":  # what it costs is the load's own time
        cpu_ns = report.get("cpu_us", 0) * 1e3
    ticks = [int(b) - int(a) for a, b in zip(before.split(), after.split())]
    runs.setdefault(name, {})[int(turn)] = {
        "us": int(cpu_ns) / 1e3 / answered if answered else None,
        "ticks_us": sum(ticks) * 1e4 / answered if answered and sum(ticks) else None,
        "user": ticks[0] / sum(ticks) if sum(ticks) else 0,
        "busy": int(cpu_ns) / int(wall_ns),
        "answered": answered,
        "errors": report["requests"] - answered + report["unexpected"],
        "p50": report.get("latency_us", {}).get("p50", 0),
        "p99": report.get("latency_us", {}).get("p99", 0),
        "rps": report.get("answered_per_second", 0),
    }

def spread(values):
    if not values:
        return "-"
    if len(values) < 4:
        return f"{min(values):.2f}-{max(values):.2f}"
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{low:.2f}-{high:.2f}"

def median(values, digits=2):
    return f"{statistics.median(values):.{digits}f}" if values else "-"

def kept(name):
    return {
        turn: run
        for turn, run in runs[name].items()
        if run["us"] and (rate or run["busy"] >= 0.95)
    }

def ratios(name, to):
    if to not in runs:
        return []
    own, other = used[name], used[to]
    return [own[turn]["us"] / other[turn]["us"] for turn in own if turn in other]

used, mark = {}, {}
for name in runs:
    used[name] = kept(name)
    mark[name] = ""
    if len(used[name]) * 2 < len(runs[name]):
        # hardly a run had its core: show them all, marked
        used[name], mark[name] = {t: r for t, r in runs[name].items() if r["us"]}, "~"

load = f"{rate} requests/s" if rate else "closed loop"
print(f"\n{load}, {connections} connections, body {body_bytes} bytes, {seconds} s a run\n")
print("| server | runs | CPU-us/request | quartiles | min-max | user part | x nginx | quartiles"
      " | x floor | quartiles | busy | requests/s | p50 us | p99 us | answers | errors |")
print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
for name in sorted(runs, key=lambda name: ("nginx floor bare tollgate".find(name), name)):
    own = list(used[name].values())
    us = [run["us"] for run in own]
    nginx, floor = ratios(name, "nginx"), ratios(name, "floor")
    cells = [
        name,
        f"{len(own)}/{len(runs[name])}",
        mark[name] + median(us),
        spread(us),
        f"{min(us):.2f}-{max(us):.2f}" if us else "-",
        median([run["user"] for run in own]),
        mark[name] + median(nginx),
        spread(nginx),
        mark[name] + median(floor),
        spread(floor),
        median([run["busy"] for run in own]),
        median([run["rps"] for run in own], 0),
        median([run["p50"] for run in own], 0),
        median([run["p99"] for run in own], 0),
        str(sum(run["answered"] for run in own)),
        str(sum(run["errors"] for run in runs[name].values())),
    ]
    print("| " + " | ".join(cells) + " |")
    check = [run["ticks_us"] / run["us"] for run in own if run["ticks_us"]]
    if check and not 0.9 < statistics.median(check) < 1.1:
        off = statistics.median(check)
        print(f"\n{name}: ticks are {off:.2f} of schedstat", file=sys.stderr)
PY
