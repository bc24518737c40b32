# The servers that the compare scripts measure, and how: sourced by them, not run. They set servers,
# server_core, load_core, bin, tollgate, nice, group, keep, tls, and per run address, upstream and key.
# Every process started here is kept by its id in standin_pid, server_pid or rig_pid, ends with the
# script, and is ended by that id alone.

me=${0##*/}
need() { # command, Debian package
    command -v "$1" >/dev/null || {
        echo "$me: $1 is missing (Debian package $2)" >&2
        exit 2
    }
}
need taskset util-linux
need python3 python3-minimal
case ,$servers, in *,nginx,*) PATH=$PATH:/usr/sbin need nginx nginx-light ;; esac
for binary in loadtest standin; do
    [ -x "$bin/$binary" ] || {
        echo "$me: $bin/$binary is missing: cargo build --release -p loadtest" >&2
        exit 2
    }
done
nginx=$(PATH=$PATH:/usr/sbin command -v nginx || true)

work=${keep:-$(mktemp -d)}
mkdir -p "$work"
chmod 755 "$work" # nginx's worker may run as another user
standin_pid='' server_pid='' rig_pid=''
stop() { # only what this script started, by its id
    local pid=$1
    [ -n "$pid" ] || return 0
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}
finish() {
    stop "$rig_pid"
    stop "$server_pid"
    stop "$standin_pid"
    [ -n "$keep" ] || rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

wait_for() { # address, what
    local _
    for _ in $(seq 200); do
        if (exec 3<>"/dev/tcp/${1%:*}/${1#*:}") 2>/dev/null; then return 0; fi
        sleep 0.05
    done
    echo "$me: $2 does not listen on $1" >&2
    return 1
}
free_port() {
    python3 -c 'import socket
print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])'
}
on_core() { # core, command …; to be run in the background, whose process it becomes
    local core=$1 grouping='{ echo "$0" >/proc/self/autogroup; } 2>/dev/null; exec "$@"'
    shift
    set -- nice -n "$nice" taskset -c "$core" "$@"
    [ -z "$group" ] || set -- setsid sh -c "$grouping" "$group" "$@"
    exec "$@"
}

# --- TLS: nothing, toward the upstream, or on both sides. The rig knows one version, cipher and group,
#     so every server has the same ones, and all show the same certificate, of a P-256 key.

rig_tls=() mix_tls=() standin_tls=() https=http nginx_listen='' nginx_upstream='' toll_listen='' toll_ca=''
case $tls in
'') ;;
upstream | both)
    servers=,$servers, servers=${servers//,floor,/,} # which knows no TLS
    servers=${servers#,} servers=${servers%,}
    "$bin/loadtest" papers "$work/tls"
    https=https
    rig_tls=(--identity "$work/tls") standin_tls=(--tls-dir "$work/tls")
    nginx_upstream="
            proxy_ssl_protocols TLSv1.3;
            proxy_ssl_session_reuse on;
            proxy_ssl_verify on;
            proxy_ssl_name localhost;
            proxy_ssl_trusted_certificate $work/tls/ca.pem;"
    toll_ca="ca_file = \"$work/tls/ca.pem\""
    if [ "$tls" = both ]; then
        rig_tls+=(--ca "$work/tls/ca.pem")
        mix_tls=(--ca "$work/tls/ca.pem")
        nginx_listen="ssl"
        nginx_upstream+="
            ssl_protocols TLSv1.3;
            ssl_certificate $work/tls/chain.pem;
            ssl_certificate_key $work/tls/key.pem;"
        toll_listen="tls = { cert_file = \"$work/tls/chain.pem\", key_file = \"$work/tls/key.pem\" }"
    fi
    ;;
*)
    echo "$me: --tls is upstream or both" >&2
    exit 2
    ;;
esac

# --- the servers: start_X listens on $address and sets server_pid, of the process that is
#     measured with its children; its upstream is $upstream

start_nginx() {
    mkdir -p "$work/nginx"
    cat >"$work/nginx/nginx.conf" <<CONF
worker_processes 1;
daemon off;
pid $work/nginx/pid;
error_log $work/nginx/error.log warn;
events { worker_connections ${nginx_connections:-4096}; }
worker_rlimit_nofile $(ulimit -n);
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path $work/nginx/body;
    proxy_temp_path $work/nginx/proxy;
    fastcgi_temp_path $work/nginx/fastcgi;
    uwsgi_temp_path $work/nginx/uwsgi;
    scgi_temp_path $work/nginx/scgi;
    client_max_body_size 64m;
    client_body_buffer_size 1m;
    upstream provider {
        server $upstream;
        keepalive 512;
        keepalive_requests 1000000000;
    }
    server {
        listen $address $nginx_listen backlog=1024;
        $nginx_upstream
        location / {
            proxy_pass $https://provider;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Authorization "Bearer sk-upstream";
            proxy_buffering off;
            proxy_read_timeout 900s;
        }
    }
}
CONF
    on_core "$server_core" "$nginx" -p "$work/nginx" -c "$work/nginx/nginx.conf" \
        2>>"$work/nginx/start.log" &
    server_pid=$!
}

start_floor() {
    on_core "$server_core" "$bin/loadtest" floor --listen "$address" --upstream "$upstream" >/dev/null &
    server_pid=$!
}

# Everything there is: no limit refuses, all of them are counted; the model is the last on its
# list; each call is held for, priced, and recorded in the ledger.
start_tollgate() {
    serve_tollgate '' 'requests_per_minute = 4294967295
concurrent = 100000
budget_total = "9000000.00"
budget_month = "9000000.00"
expires = "2100-01-01T00:00:00Z"
models = ["gpt-4o", "gpt-4.1*", "claude-sonnet-4*", "claude-opus-4*", "gemini-2.5-pro", "o4-mini",
    "openai/gpt-5", "standin/*"]'
}
start_bare() { serve_tollgate 'enabled = false' ''; }

# One shard on the server's core; its configuration has the hash of the load's key.
serve_tollgate() { # lines of [ledger], lines of [[key]]
    local admin
    admin=$(free_port)
    rm -rf "$work/tollgate"
    mkdir -p "$work/tollgate"
    cat >"$work/tollgate/tollgate.toml" <<CONF
state_dir = "$work/tollgate/state"
[listen]
data = "$address"
admin = "127.0.0.1:$admin"
$toll_listen
[shards]
count = ${shards:-1}
driver = "${TOLLGATE_DRIVER:-auto}"
[[provider]]
name = "standin"
kind = "${kind:-openai}"
$toll_ca
base_url = "$https://$upstream$([ "${kind:-openai}" != openai ] || echo /v1)"
credentials = [{ name = "a", key = "file:$work/tollgate/upstream-key" }]
models = ["*"]
[alias]
toll = "standin/ok"
[price]
fallback = { input = 150000, output = 600000 }
[ledger]
$1
[[key]]
name = "load"
sha256 = "$(printf %s "$key" | sha256sum | cut -d' ' -f1)"
$2
CONF
    printf %s sk-upstream >"$work/tollgate/upstream-key"
    on_core "$server_core" "$tollgate" serve "$work/tollgate/tollgate.toml" \
        >"$work/tollgate/log" 2>&1 &
    server_pid=$!
}

# --- what they took

[ "$(wc -w <"/proc/$$/schedstat")" -eq 3 ] || {
    echo "$me: this kernel keeps no schedstat" >&2
    exit 2
}
# Sums are the shell's own: the usual awk prints no integer above 2^31, 2.1 seconds.
cpu_ns() { # run time of all threads of a process and its children
    local pid=$1 sum=0 part child
    while read -r part _; do sum=$((sum + part)); done \
        < <(cat "/proc/$pid/task/"*/schedstat 2>/dev/null)
    for child in $(cat "/proc/$pid/task/"*/children 2>/dev/null); do
        sum=$((sum + $(cpu_ns "$child")))
    done
    echo "$sum"
}
ticks() { # user and system ticks of the process and its children, as a check on the above
    local pid=$1 child
    awk '{ sub(/^.*\) /, ""); print $12, $13 }' "/proc/$pid/stat"
    for child in $(cat "/proc/$pid/task/"*/children 2>/dev/null); do ticks "$child"; done
}
total_ticks() { ticks "$1" | awk '{ u += $1; s += $2 } END { print u + 0, s + 0 }'; }
resident_kib() { # resident memory of a process and its children
    local pid=$1 sum child
    sum=$(awk '/^VmRSS:/ { print $2 }' "/proc/$pid/status" 2>/dev/null)
    for child in $(cat "/proc/$pid/task/"*/children 2>/dev/null); do
        sum=$((sum + $(resident_kib "$child")))
    done
    echo "${sum:-0}"
}

rig_says() { # line
    until grep -q "^$1" "$work/rig.log" 2>/dev/null; do
        kill -0 "$rig_pid" 2>/dev/null || {
            echo "$me: the rig ended: $(cat "$work/rig.log")" >&2
            return 1
        }
        sleep 0.02
    done
}
