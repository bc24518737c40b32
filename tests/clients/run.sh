#!/usr/bin/env bash
# Real clients against the running binary: tests/clients/run.sh [quick|all] [TOLLGATE STANDIN]
#
# Each client makes its calls directly at a stand-in provider and through a gateway in front of
# it. Every check demands its expected result of both, and the same of both unless it says why
# not, with a reason of differences.txt. Curl and the SDKs make the quick checks over TLS too, with
# a CA of this run that they are told of: rows whose client ends in -tls. Prints one table; the exit
# code is 1 if any check failed.
# Without paths it builds and takes the pair of target/release, if both are there, else of
# target/debug. `all` adds Claude Code and what is large or waits for seconds. A client whose
# language is missing is skipped, and the table says so.
#
# Deliberately not: faults below HTTP, load, speed. Ends what it started by its id.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../.." && pwd)"
readonly here root
# The oldest Node.js that the packages run on.
readonly node_oldest=18

usage() {
  echo "usage: run.sh [quick|all] [TOLLGATE STANDIN]" >&2
  exit 2
}

mode=quick
paths=()
for argument in "$@"; do
  case "$argument" in
    quick | all) mode="$argument" ;;
    -*) usage ;;
    *) paths+=("$argument") ;;
  esac
done

scratch="$(mktemp -d)"
# What runs beside this, by name; what has been waited for is no longer in it.
declare -A part_of=()
end_everything() {
  local pid
  for pid in "${part_of[@]}"; do
    kill "$pid" 2>/dev/null || true
  done
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

# The row of a part that cannot run here.
skip() {
  mkdir -p "$scratch/$1"
  printf '%s\tall checks\tskip\t-\t%s\n' "$1" "$2" >>"$scratch/$1/results"
  echo "skipped: $1: $2"
}

# A CA, and a certificate of it for 127.0.0.1.
certify() {
  local folder="$scratch/certificates"
  local new=(openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
  command -v openssl >/dev/null || { echo "openssl is missing"; return 1; }
  mkdir "$folder"
  cat >"$folder/extensions" <<'EXTENSIONS'
subjectAltName = IP:127.0.0.1
basicConstraints = CA:FALSE
authorityKeyIdentifier = keyid
subjectKeyIdentifier = hash
EXTENSIONS
  "${new[@]}" -x509 -days 2 -subj "/CN=CA of this run" -addext keyUsage=critical,keyCertSign \
    -keyout "$folder/ca.key" -out "$folder/ca.pem" &&
    "${new[@]}" -subj /CN=127.0.0.1 -keyout "$folder/key.pem" -out "$folder/request" &&
    openssl x509 -req -days 2 -in "$folder/request" -CA "$folder/ca.pem" \
      -CAkey "$folder/ca.key" -CAcreateserial -extfile "$folder/extensions" \
      -out "$folder/cert.pem"
}

# secured_client NAME COMMAND…: one that makes its quick checks over TLS too, if that is possible,
# as NAME-tls.
secured_client() {
  client "$@"
  [[ -z "$certificates" ]] || CERTIFICATES="$certificates" client "$1-tls" "${@:2}"
}

# client NAME COMMAND…: starts its checks beside what runs already.
order=()
client() {
  order+=("$1")
  mkdir -p "$scratch/$1"
  SCRATCH="$scratch" MODE="$mode" TOLLGATE_BINARY="$tollgate" STANDIN_BINARY="$standin" \
    bash "$here/pair.sh" "$@" 2>>"$scratch/$1/errors" &
  part_of[$1]=$!
}

# Succeeds or leaves its reason in $scratch/NAME.why.
install_python() {
  exec >"$scratch/python.log" 2>&1
  why() { echo "$1" >"$scratch/python.why"; }
  command -v python3 >/dev/null || { why "python3 is missing"; return 1; }
  python3 -m venv "$scratch/venv" || { why "python3 has no working venv"; return 1; }
  "$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
    --no-compile --requirement "$here/requirements.txt" ||
    { why "its packages cannot be installed"; return 1; }
}

# The checks lie beside the packages, since a module is looked for from where its importer is.
install_node() {
  exec >"$scratch/node.log" 2>&1
  why() { echo "$1" >"$scratch/node.why"; }
  local omit=(--omit=dev)
  [[ $mode == quick ]] || omit=()
  command -v node >/dev/null || { why "node is missing"; return 1; }
  command -v npm >/dev/null || { why "npm is missing"; return 1; }
  [[ "$(node -p 'parseInt(process.versions.node)')" -ge $node_oldest ]] ||
    { why "node is older than $node_oldest"; return 1; }
  mkdir "$scratch/packages"
  cp "$here"/package.json "$here"/package-lock.json "$here"/*.mjs "$scratch/packages/"
  npm ci --no-audit --no-fund --prefix "$scratch/packages" "${omit[@]}" ||
    { why "its packages cannot be installed"; return 1; }
}

python_clients() {
  local python="$scratch/venv/bin/python"
  secured_client openai-python "$python" "$here/openai_python.py"
  secured_client anthropic-python "$python" "$here/anthropic_python.py"
  client docs-python env PATH="$scratch/venv/bin:$PATH" bash "$here/docs.sh" python
}

node_clients() {
  local packages="$scratch/packages" claude="$scratch/packages/node_modules/.bin/claude"
  secured_client openai-node node "$packages/openai_node.mjs"
  secured_client anthropic-node node "$packages/anthropic_node.mjs"
  client docs-node env PACKAGES="$packages" bash "$here/docs.sh" js
  [[ $mode == all ]] || return 0
  if "$claude" --version >"$scratch/claude.log" 2>&1; then
    client claude-code node "$packages/claude_code.mjs" "$claude"
    client docs-claude env PATH="$packages/node_modules/.bin:$PATH" HOME="$scratch/docs-claude" \
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 bash "$here/docs.sh" claude
  else
    order+=(claude-code)
    skip claude-code "its program does not start: $(head -c 200 "$scratch/claude.log")"
  fi
}

# until_ended NAME: its exit code.
until_ended() {
  local code=0
  wait "${part_of[$1]}" || code=$?
  unset "part_of[$1]"
  return "$code"
}

# language NAME: starts its clients once its packages are there.
language() {
  if until_ended "install-$1"; then
    "$1_clients"
  else
    order+=("$1")
    tail -3 "$scratch/$1.log"
    skip "$1" "$(cat "$scratch/$1.why")"
  fi
}

# The lines of a client. Over TLS it has not been asked directly again: what was got without
# stands beside what was made with it.
rows_of() {
  local plain="$scratch/${1%-tls}/results" own="$scratch/$1/results"
  [[ $1 == *-tls ]] || { cat "$own"; return; }
  awk -F '\t' -v OFS='\t' '
    NR == FNR { if ($3 == "direct") { row[++rows] = $1 FS $2; line[rows] = $0 } next }
    { made[$1 FS $2] = 1; row[++rows] = $1 FS $2; line[rows] = $0 }
    END {
      for (at = 1; at <= rows; at++) if (row[at] in made) {
        $0 = line[at]
        $1 = $1 "-tls"
        print
      }
    }' "$plain" "$own"
}

# One row a check. What was expected must have been seen, and the same on both sides, unless the
# check expects one thing directly and another through the gateway, and names a listed reason.
table() {
  local name
  for name in "${order[@]}"; do
    rows_of "$name"
  done | awk -F '\t' -v reasons="$here/differences.txt" '
    function glob(pattern) {
      gsub(/[][().+^$|{}?\\]/, "\\\\&", pattern)
      gsub(/\*/, ".*", pattern)
      return "^" pattern "$"
    }
    function cell(text, width) {
      return length(text) > width ? substr(text, 1, width - 1) "~" : text
    }
    BEGIN {
      while ((getline line < reasons) > 0)
        if (split(line, part, /: /) > 1 && line !~ /^#/) listed[part[1]] = line
    }
    {
      row = $1 FS $2
      if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
      if ($3 == "skip") { note[row] = "skipped: " $5; next }
      got[row, $3] = $5
      expected[row, $3] = $4
      if ($6 != "") why[row] = $6
      if ($5 !~ glob($4)) wrong[row] = wrong[row] "\n    " $3 ": expected " $4 ", got " $5
    }
    END {
      form = "%-20s | %-31s | %-62s | %-62s | %s\n"
      printf form, "client", "check", "direct", "through", "verdict"
      for (at = 1; at <= rows; at++) {
        row = order[at]
        split(row, part, FS)
        direct = (row, "direct") in got ? got[row, "direct"] : "-"
        through = (row, "through") in got ? got[row, "through"] : "-"
        if (row in note) verdict = note[row]
        else if (row in wrong || through == "-") verdict = "FAILED"
        else if (direct == "-") { verdict = "ok, gateway only"; own[part[1]]++ }
        else if (direct == through && why[row] != "") verdict = "FAILED: differs no longer"
        else if (direct == through) { verdict = "ok"; same[part[1]]++ }
        else if (!(why[row] in listed)) verdict = "FAILED: differs for no listed reason"
        else { verdict = "ok, " why[row]; used[why[row]] = 1; other[part[1]]++ }
        if (verdict ~ /^FAILED/) failed[part[1]]++
        if (verdict ~ /^ok/) good++
        else if (verdict ~ /^FAILED/) bad++
        printf form, part[1], part[2], cell(direct, 62), cell(through, 62), verdict
        if (row in wrong) print substr(wrong[row], 2)
        clients[part[1]] = 1
      }
      print "\nThe reasons of differences above:"
      for (reason in used) print "  " listed[reason]
      print ""
      form = "%-20s | %5s | %16s | %12s | %6s\n"
      printf form, "client", "same", "listed reason", "gateway only", "failed"
      for (at = 1; at <= rows; at++) {
        split(order[at], part, FS)
        if (part[1] in told) continue
        told[part[1]] = 1
        printf form, part[1], same[part[1]] + 0, other[part[1]] + 0, own[part[1]] + 0,
          failed[part[1]] + 0
      }
      printf "%d ok, %d failed\n", good, bad
      exit bad > 0 || good == 0
    }'
}

show_faults() {
  local name
  for name in "${order[@]}"; do
    [[ ! -s "$scratch/$name/errors" ]] ||
      { echo "--- $name said:"; tail -20 "$scratch/$name/errors"; }
  done
}

command -v curl >/dev/null || { echo "curl is missing" >&2; exit 2; }
binaries
install_python &
part_of[install-python]=$!
install_node &
part_of[install-node]=$!
certificates="$scratch/certificates"
if ! certify >"$scratch/certify.log" 2>&1; then
  certificates=""
  order+=(tls)
  skip tls "no certificate can be made: $(tail -1 "$scratch/certify.log" | head -c 200)"
fi
secured_client curl bash "$here/curl.sh"
client docs-curl bash "$here/docs.sh" sh
language python
language node
for name in "${!part_of[@]}"; do
  until_ended "$name" ||
    printf '%s\tpair\tthrough\truns to its end\tended early\n' "$name" >>"$scratch/$name/results"
done
table || { show_faults; exit 1; }
printf 'all in %s s\n' "$SECONDS"
