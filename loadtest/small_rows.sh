#!/usr/bin/env bash
# Three rows of the design's targets that the compare scripts do not have.
#
#   idle      memory of a keep-alive connection that has had one answer and is silent since
#   leaves    clients that leave a stream half-way: how many upstream connections are closed then,
#             and how soon
#   scaling   CPU time per request with one shard and with two, all traffic on one key
#
# Each is run for every server, in an order that rotates with the rounds. CPU is the run time of all
# threads of the server from /proc, memory its resident memory. Prints Markdown lines for
# RESULTS.md; nothing is installed or left over.
set -euo pipefail

cases=idle,leaves,scaling tollgate='' rounds=5 seconds=2 connections=32 idle=1500 leaves=40
tls='' bin=target/release server_core=0 load_core=1 nice=0 group='' keep='' servers=nginx
usage() {
    cat <<'TEXT'
usage: loadtest/small_rows.sh --tollgate PATH [options]
  --cases LIST         of idle,leaves,scaling (default all)
  --rounds N           rounds (default 5)
  --seconds S          of one run of scaling (default 2)
  --connections N      of scaling (default 32)
  --idle N             connections of idle (default 1500)
  --leaves N           clients of leaves (default 40)
  --bin DIR            where loadtest and standin are (default target/release)
  --keep DIR           keep configurations there
TEXT
}
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    esac
    [ $# -ge 2 ] || { echo "small_rows.sh: $1 needs a value" >&2; exit 2; }
    case $1 in
    --tollgate) tollgate=$2 servers=nginx,tollgate ;;
    --cases) cases=$2 ;;
    --rounds) rounds=$2 ;;
    --seconds) seconds=$2 ;;
    --connections) connections=$2 ;;
    --idle) idle=$2 ;;
    --leaves) leaves=$2 ;;
    --bin) bin=$2 ;;
    --keep) keep=$2 ;;
    *) echo "small_rows.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
    esac
    shift 2
done
[ -n "$tollgate" ] || { usage >&2; exit 2; }
nginx_connections=20000 key=caller
. "$(dirname "$0")/servers.sh"

upstream=127.0.0.1:$(free_port)
"$bin/standin" --listen "$upstream" --tally 0 >/dev/null &
standin_pid=$!
wait_for "$upstream" standin

# clients idle|leaves N ADDRESS MODEL PID: opens them, says what the case is about. A connection
# of idle has its one answer before the next is opened; a stream of leaves would go on for 99 s.
clients() {
    python3 - "$@" "${upstream##*:}" <<'PY'
import socket, sys, time

case, many, address, model, pid, upstream = sys.argv[1:]
host, port = address.rsplit(":", 1)

# Below what keeps every buffer of the last five seconds among those a shard keeps anyway: what a
# burst leaves in the heap is another row, the soak's.
OPENED_A_SECOND = 150

def call(stream):
    body = b'{"model":"%s",%s"messages":[{"role":"user","content":"hi"}]}' % (
        model.encode(), b'"stream":true,' if stream else b"")
    s = socket.create_connection((host, int(port)))
    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\n"
              b"authorization: Bearer caller\r\ncontent-type: application/json\r\n"
              b"content-length: %d\r\n\r\n" % len(body) + body)
    return s

def processes():
    todo = [pid]
    while todo:
        at = todo.pop()
        yield at
        for line in open(f"/proc/{at}/task/{at}/children"):
            todo += line.split()

def resident():
    return sum(int(line.split()[1]) for at in processes()
               for line in open(f"/proc/{at}/status") if line.startswith("VmRSS"))

def upstreams():  # connections of the server to the upstream, by the kernel's table
    there = "%04X" % int(upstream)
    return sum(1 for line in list(open("/proc/net/tcp"))[1:]
               if line.split()[2].endswith(":" + there) and line.split()[3] == "01")

def answer(s):
    got = b""
    while b"\r\n\r\n" not in got:
        got += s.recv(65536) or sys.exit("closed")
    assert got.startswith(b"HTTP/1.1 200"), got[:200]

if case == "idle":
    kept = []
    for _ in range(16):
        s = call(False); answer(s); kept.append(s)
    time.sleep(7)
    before = resident()
    for _ in range(int(many)):
        s = call(False); answer(s); kept.append(s)
        time.sleep(1 / OPENED_A_SECOND)
    time.sleep(7)
    print((resident() - before) / int(many))
else:
    kept = [call(True) for _ in range(int(many))]
    for s in kept:
        s.settimeout(10)
        answer(s)
    before = upstreams()
    for s in kept:
        s.close()
    begun = time.monotonic()
    while upstreams() > before - int(many) and time.monotonic() - begun < 20:
        time.sleep(0.002)
    print(before - upstreams(), round((time.monotonic() - begun) * 1e3, 1))
PY
}

case_of_server() { # case, server
    local address=127.0.0.1:$(free_port) model=ok before answered report
    case $1 in
    leaves) model=kill-mix-1000-99 ;;
    esac
    [ "$2" = nginx ] || model=standin/$model
    case $2 in
    nginx) start_nginx ;;
    one | tollgate) shards=1 start_tollgate ;;
    two) shards=2 server_core=0,1 start_tollgate ;;
    esac
    wait_for "$address" "$2"
    case $1 in
    scaling)
        before=$(cpu_ns "$server_pid")
        report=$("$bin/loadtest" mix --target "$address" --key "$key" --model "$model" \
            --connections "$connections" --seconds "$seconds" --report json)
        answered=$(python3 -c 'import json,sys; print(json.load(sys.stdin)["answered"])' <<<"$report")
        printf '%s\t%s\t%s\n' "$1" "$2" \
            "$(($(cpu_ns "$server_pid") - before)) $answered" >>"$work/rows.tsv"
        ;;
    idle) printf '%s\t%s\t%s\n' "$1" "$2" "$(clients idle "$idle" "$address" "$model" "$server_pid")" \
        >>"$work/rows.tsv" ;;
    leaves) printf '%s\t%s\t%s\n' "$1" "$2" \
        "$(clients leaves "$leaves" "$address" "$model" "$server_pid")" >>"$work/rows.tsv" ;;
    esac
    stop "$server_pid"
    server_pid=''
}

: >"$work/rows.tsv"
for round in $(seq "$rounds"); do
    for case in ${cases//,/ }; do
        order=(nginx tollgate)
        [ "$case" != scaling ] || order=(one two)
        for at in 0 1; do case_of_server "$case" "${order[((at + round) % 2)]}"; done
    done
    echo "round $round of $rounds, load average $(cut -d' ' -f1 /proc/loadavg)" >&2
done

python3 - "$work/rows.tsv" "$leaves" <<'PY'
import statistics, sys

rows = {}
for line in open(sys.argv[1]):
    case, server, values = line.rstrip("\n").split("\t")
    rows.setdefault(case, {}).setdefault(server, []).append([float(v) for v in values.split()])

def said(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"

print("\n| case | server | runs | median (least-most) | |\n|---|---|--:|--:|---|")
for case, servers in rows.items():
    for server, runs in servers.items():
        if case == "idle":
            print(f"| idle | {server} | {len(runs)} | {said([r[0] for r in runs], 2)} KiB | |")
        elif case == "leaves":
            gone = sum(int(r[0]) for r in runs)
            print(f"| leaves | {server} | {len(runs)} | {said([r[1] for r in runs], 0)} ms to the last |"
                  f" {gone} of {int(sys.argv[2]) * len(runs)} |")
        else:
            print(f"| scaling | {server} shard(s) | {len(runs)} |"
                  f" {said([r[0] / 1e3 / r[1] for r in runs], 2)} CPU-us a request | |")
if "scaling" in rows:
    each = {s: [r[0] / r[1] for r in runs] for s, runs in rows["scaling"].items()}
    print(f"\ntwo shards are {said([b / a for a, b in zip(each['one'], each['two'])], 2)} x one")
PY
