#!/usr/bin/env bash
# nginx, the floor and tollgate on the same core in turn, for streams: CPU time per event, memory
# per held stream, and how much later than the upstream's the client's first content event comes.
#
# Each round runs every case with every server once, in an order that rotates, so that what else
# the machine does falls on all of them alike. The server has core 0; core 1 has the rig, which
# plays clients and upstream on one thread and compares every byte. CPU is the run time of all
# threads of the server from /proc (nanoseconds), divided by the events that clients got whole. Memory
# is the resident memory of the server's processes with all streams open, less that with none and
# 16 gone.
# Prints Markdown lines for RESULTS.md; nothing is installed or left over.
#
# A process needs two descriptors a stream: more streams than half of `ulimit -Hn` cannot be held.
set -euo pipefail

rounds=10 seconds=4 warmup=1 held_seconds=12 bin=target/release tollgate= dialect=chat
cases=ping-pong,rate,burst,first,held-1000,held-9900
servers=nginx,floor server_core=0 load_core=1 keep= nice=0 group= tls= spin=--spin
usage() {
    cat <<'TEXT'
usage: loadtest/compare_streams.sh [options]
  --servers LIST       of nginx, floor, tollgate, bare, and direct: no server, the rig's own cost
                       (default nginx,floor)
  --tollgate PATH      the tollgate binary; adds tollgate to the servers, with every limit on its key
                       and its ledger kept, and bare: the same without limits and without ledger
  --cases LIST         of ping-pong, rate, burst, first, held-N (default all of them, N 1000 and 9900)
                         ping-pong  16 streams, the next event once the last one was read (also
                                    ping-pong-N)
                         rate       300 streams, 30,000 events a second together (also rate-N-R)
                         burst      50 streams, each 20 events in one write every 100 ms
                         first      100 streams opened a second; the first event 20 ms behind the head
                         held-N     N streams, open and silent
  --dialect D          chat or messages (default chat)
  --bin DIR            where loadtest and standin are (default target/release)
  --rounds N           rounds (default 10)
  --seconds S          measured seconds a run (default 4)
  --warmup S           seconds before that (default 1)
  --held-seconds S     how long held streams are held, for the CPU they take (default 12)
  --no-spin            let the rig sleep between events: on a machine with few cores it then shares
                       its core, and keeps less well to a pace
  --server-core N      core of the server (default 0)
  --load-core N        core of the rig (default 1)
  --nice N, --group N  as of compare.sh
  --tls SIDES          TLS 1.3 with AES-128-GCM toward the upstream (upstream), or on the server's
                       listener too (both); without the floor, which knows none
  --keep DIR           keep configurations and reports there
TEXT
}
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    --no-spin) spin=; shift; continue ;;
    esac
    [ $# -ge 2 ] || { echo "compare_streams.sh: $1 needs a value" >&2; exit 2; }
    case $1 in
    --servers) servers=$2 ;;
    --tollgate) tollgate=$2 servers+=,tollgate,bare ;;
    --cases) cases=$2 ;;
    --dialect) dialect=$2 ;;
    --bin) bin=$2 ;;
    --rounds) rounds=$2 ;;
    --seconds) seconds=$2 ;;
    --warmup) warmup=$2 ;;
    --held-seconds) held_seconds=$2 ;;
    --server-core) server_core=$2 ;;
    --load-core) load_core=$2 ;;
    --nice) nice=$2 ;;
    --group) group=$2 ;;
    --tls) tls=$2 ;;
    --keep) keep=$2 ;;
    *) echo "compare_streams.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
    esac
    shift 2
done

kind=openai
[ "$dialect" = chat ] || kind=anthropic
ulimit -n "$(ulimit -Hn)"
# more than there can be: with a sixteenth of them left it would close those without a request
nginx_connections=$(($(ulimit -n) * 5 / 4))
. "$(dirname "$0")/servers.sh"

# --- one run

options() { # case
    case $1 in
    ping-pong) options ping-pong-16 ;;
    ping-pong-*) echo "--mode ping-pong --streams ${1#ping-pong-}" ;;
    rate) options rate-300-30000 ;;
    rate-*-*)
        set -- "${1#rate-}"
        echo "--mode rate --streams ${1%-*} --rate ${1#*-} --latency"
        ;;
    burst) echo "--mode burst --streams 50 --rate 10000 --burst 20" ;;
    first) echo "--mode first --streams 16 --rate 100 --gap-ms 20" ;;
    held-*) echo "--mode held --streams ${1#held-}" ;;
    *) echo "$me: unknown case $1" >&2; exit 2 ;;
    esac
}

start_rig() { # case, what it speaks to
    local mode
    mode=$(options "$1")
    shift
    : >"$work/rig.log" # what the last one said must not be read as this one's
    # shellcheck disable=SC2086 # the options are words
    on_core "$load_core" "$bin/loadtest" streams $mode "$@" --upstream "$upstream" --key "$key" \
        --model "$model" --dialect "$dialect" --warmup "$warmup" --seconds "$seconds" $spin --hold \
        "${rig_tls[@]}" --report json <&4 >"$work/report" 2>"$work/rig.log" &
    rig_pid=$!
}

begin() { before=$(cpu_ns "$server_pid") at=$(date +%s%N); }
end() { wall=$(($(date +%s%N) - at)) cpu=$(($(cpu_ns "$server_pid") - before)); }

run() { # round, case, server
    local before cpu=0 at wall=1 base=0 held=0 report
    local address key=caller model=ok
    address=127.0.0.1:$(free_port)
    [ "$3" != tollgate ] && [ "$3" != bare ] || model=toll
    if [ "$3" = direct ]; then
        case $2 in held-*) return 0 ;; esac
        start_rig "$2" --direct
        echo >&4
        wait "$rig_pid" || true
    else
        start_rig "$2" --target "$address"
        rig_says 'rig upstream'
        "start_$3"
        case $2 in
        held-*)
            rig_says base
            base=$(resident_kib "$server_pid")
            echo >&4
            rig_says warm
            held=$(resident_kib "$server_pid")
            begin
            sleep "$held_seconds"
            end
            echo >&4
            wait "$rig_pid" || true
            ;;
        *)
            rig_says warm
            begin
            echo >&4
            wait "$rig_pid" || true
            end
            ;;
        esac
    fi
    report=$(cat "$work/report")
    rig_pid=''
    stop "$server_pid"
    server_pid=''
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$cpu" "$wall" "$base" "$held" \
        "${report:-null}" >>"$work/runs.tsv"
}

: >"$work/runs.tsv"
upstream=127.0.0.1:$(free_port)
rm -f "$work/go"
mkfifo "$work/go"
exec 4<>"$work/go"
IFS=, read -ra names <<<"$servers"
IFS=, read -ra kinds <<<"$cases"
for kind_of_run in "${kinds[@]}"; do options "$kind_of_run" >/dev/null; done
for round in $(seq "$rounds"); do
    for kind_of_run in "${kinds[@]}"; do
        for at in "${!names[@]}"; do
            run "$round" "$kind_of_run" "${names[((at + round) % ${#names[@]})]}"
        done
    done
    echo "round $round of $rounds, load average $(cut -d' ' -f1 /proc/loadavg)" >&2
done

# --- medians

python3 - "$work/runs.tsv" "$seconds" "$dialect" <<'PY'
import json, statistics, sys

path, seconds, dialect = sys.argv[1:]
runs = {}
for line in open(path):
    turn, case, name, cpu_ns, wall_ns, base, held, report = line.rstrip("\n").split("\t", 7)
    report = json.loads(report) or {}
    delivered, streams = report.get("delivered", 0), report.get("streams", 0)
    delay = report.get("delay_us", {})
    is_held = case.startswith("held-")
    wall_ns = int(wall_ns) if is_held else report.get("seconds", 0) * 1e9 or 1
    if name == "direct":  # what it costs is the load's own time
        cpu_ns = report.get("cpu_us", 0) * 1e3
    runs.setdefault(case, {}).setdefault(name, {})[int(turn)] = {
        "us": int(cpu_ns) / 1e3 / delivered if delivered else None,
        "busy": int(cpu_ns) / int(wall_ns),
        "rate": report.get("per_second", 0),
        "events": delivered,
        "kib": (int(held) - int(base)) / streams if streams else None,
        "base": int(base),
        "p50": delay.get("p50", 0),
        "p99": delay.get("p99", 0),
        "bad": 1 if not report else report["opened"] - report["whole"],
        "beats": report.get("beats", 0),
    }

def quartiles(values, digits):
    if not values:
        return "-"
    if len(values) < 4:
        return f"{min(values):.{digits}f}-{max(values):.{digits}f}"
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{low:.{digits}f}-{high:.{digits}f}"

def median(values, digits):
    return f"{statistics.median(values):.{digits}f}" if values else "-"

def ratios(case, name, to, what):
    own, other = runs[case][name], runs[case].get(to, {})
    return [own[t][what] / other[t][what] for t in own if t in other and own[t][what]
            and other[t][what]]

def table(case, columns):
    heads = ["server", "runs"]
    for head, _, _ in columns:
        heads += [head, "quartiles"] if head[-1] != "." else [head[:-1]]
    print(f"\n{case}, {dialect}, {seconds} s a run\n")
    print("| " + " | ".join(heads) + " |")
    print("|---|" + "--:|" * (len(heads) - 1))
    for name in sorted(runs[case], key=lambda name: ("nginx floor bare tollgate".find(name), name)):
        own = list(runs[case][name].values())
        cells = [name, str(len(own))]
        for head, what, digits in columns:
            if isinstance(what, tuple):
                values = ratios(case, name, *what)
            else:
                values = [run[what] for run in own if run[what] is not None]
            cells.append(median(values, digits))
            if head[-1] != ".":
                cells.append(quartiles(values, digits))
        print("| " + " | ".join(cells) + " |")
    total = sum(run["bad"] for own in runs[case].values() for run in own.values())
    print(f"\nstreams that did not come whole: {total}")

for case in runs:
    if case.startswith("held-"):
        table(case, [
            ("KiB a stream", "kib", 2), ("x nginx", ("nginx", "kib"), 2), ("KiB without.", "base", 0),
            ("share of the core", "busy", 4), ("heartbeats.", "beats", 0),
        ])
    elif case == "first":
        table(case, [
            ("p50 us", "p50", 0), ("p99 us", "p99", 0), ("x nginx", ("nginx", "p50"), 2),
            ("CPU-us a stream", "us", 1), ("streams.", "events", 0),
        ])
    else:
        table(case, [
            ("CPU-us an event", "us", 2), ("x nginx", ("nginx", "us"), 2), ("x floor", ("floor", "us"), 2),
            ("busy.", "busy", 2), ("events/s.", "rate", 0), ("p50 us.", "p50", 0), ("p99 us.", "p99", 0),
        ])
PY
