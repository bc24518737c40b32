#!/usr/bin/env bash
# Runs the examples of docs/clients.md as they stand there: docs.sh sh|python|js|claude.
#
# Started by pair.sh. `claude` are the examples of the shell whose names begin so: they need it. An
# example is a fenced block of that language below a line `<!-- check: NAME -->`. It must end
# well and print the stand-in's words; where it calls is in the environment, as the page says.
set -euo pipefail

language="$1"
page="$(cd "$(dirname "$0")/../.." && pwd)/docs/clients.md"
scratch="$(mktemp -d)"
readonly language page scratch
trap 'rm -rf "$scratch"' EXIT

awk -v language="${language/claude/sh}" -v scratch="$scratch" '
  /^<!-- check: .* -->$/ { name = $3; next }
  /^```/ && file { close(file); file = ""; next }
  name && $0 == "```" language { file = scratch "/" name; printf "" >file; name = ""; next }
  /^```/ { name = "" }
  file { print >file }
' "$page"

for example in "$scratch"/*; do
  [[ -e "$example" ]] || { echo "no example in $page" >&2; exit 1; }
  name="$(basename "$example")"
  [[ $language == claude && $name == claude-* || $language != claude && $name != claude-* ]] ||
    continue
  # Only a gateway has a list of its models.
  [[ $name != *-models || $SIDE == through ]] || continue
  case "$language" in
    sh | claude) got="$(bash -eu "$example")" || got="exit code $?" ;;
    python) got="$(python "$example")" || got="exit code $?" ;;
    js)
      # A module's packages are looked for from where it lies.
      cp "$example" "$PACKAGES/$name.mjs"
      got="$(node "$PACKAGES/$name.mjs")" || got="exit code $?"
      ;;
  esac
  case "$name" in
    *-models) expected='*fast*' ;;
    *) expected='*The toll is counted once*' ;;
  esac
  # shellcheck disable=SC2254
  case "$got" in
    $expected) got="prints ${expected//\*/}" ;;
    *) got="prints otherwise: $(head -c 40 <<<"$got" | tr '\n\t' '  ')" ;;
  esac
  printf 'docs\t%s\t%s\tprints %s\t%s\n' "$name" "$SIDE" "${expected//\*/}" "$got"
done
