# shellcheck shell=bash
# Sourced by quickstart.sh and test.sh: says each step before it starts and how long it took.

# step TITLE COMMAND...: runs the command; when it fails, says which step failed and returns its code.
# The command runs where "set -e" does nothing, so a function given here chains its own commands with &&.
step() {
  local title=$1 start=$SECONDS code=0
  shift
  printf '\n==> %s\n' "$title"
  "$@" || code=$?
  if [ "$code" -ne 0 ]; then
    printf '==> %s: failed with code %d after %d s\n' "$title" "$code" $((SECONDS - start)) >&2
    return "$code"
  fi
  printf '==> %s: done in %d s\n' "$title" $((SECONDS - start))
}
