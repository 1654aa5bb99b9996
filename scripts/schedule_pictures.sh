#!/usr/bin/env bash
# Draws the pictures of docs/schedules.md with `millrace simulate --svg`.
# usage: scripts/schedule_pictures.sh MILLRACE   (the program; run from the top of the repository)
set -euo pipefail

millrace=$(realpath "$1")
out=$(realpath docs)/schedules
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# graph STAGES TIME: equal stages, backward twice the forward.
graph() {
  echo "millrace_graph: 1"
  echo "name: stages"
  echo "operators:"
  local before=""
  for ((s = 0; s < $1; ++s)); do
    echo "  - {name: s$s, kind: cost, inputs: [$before], forward: $2 ms, backward: $((2 * $2)) ms, parameters: 4 B, output: 4 B, saved: 1 KiB}"
    before=s$s
  done
}

# pipeline SHARE MICRO_BATCHES DEVICE…: one stage of one operator on each device of the list.
pipeline() {
  echo "  - share: $1"
  echo "    micro_batches: $2"
  echo "    stages:"
  local s=0
  for device in "${@:3}"; do
    echo "      - {ops: [s$s], devices: [$device]}"
    s=$((s + 1))
  done
}

# draw NAME SCHEDULE STAGES TIME BATCH < pipelines of the plan
draw() {
  graph "$3" "$4" > "$work/graph.yaml"
  cat > "$work/experiment.yaml" <<END
name: $1
model: {file: graph.yaml}
cluster: {flat: {devices: 4, bandwidth: unlimited}}
data: {batch: $5}
END
  # A plan names its graph by a digest: any plan of the graph tells it.
  "$millrace" plan "$work/experiment.yaml" -o "$work/any.yaml" --quiet --overwrite > /dev/null
  { echo "millrace_plan: 1"; grep graph_digest "$work/any.yaml"; echo "schedule: $2"; echo "pipelines:"; cat; } > "$work/plan.yaml"
  echo "plan: {file: plan.yaml}" >> "$work/experiment.yaml"
  rm -f "$out/$1.svg"
  "$millrace" simulate "$work/experiment.yaml" --svg "$out/$1.svg" --quiet > /dev/null
}

for schedule in gpipe 1f1b hippie zb-h1 zb-h2 zb-greedy pipedream pipedream-2bw; do
  pipeline 1.0 8 0 1 2 3 | draw $schedule $schedule 4 4 8
done
pipeline 1.0 8 0 1 2 3 0 1 2 3 | draw interleaved interleaved 8 2 8
pipeline 1.0 8 0 1 2 3 3 2 1 0 | draw zb-v zb-v 8 2 8
{ pipeline 0.5 2 0 1 2 3; pipeline 0.5 2 3 2 1 0; } | draw chimera chimera 4 4 4

# deferred K: two pipelines of two stages of four layers; the sum of a stage's gradients takes 16 ms, its backward 8 ms.
deferred() {
  {
    echo "millrace_graph: 1"
    echo "name: layers"
    echo "operators:"
    local before=""
    for ((s = 0; s < 8; ++s)); do
      echo "  - {name: s$s, kind: cost, inputs: [$before], forward: 1 ms, backward: 2 ms, parameters: 4 MB, output: 4 B, saved: 1 KiB}"
      before=s$s
    done
  } > "$work/graph.yaml"
  cat > "$work/experiment.yaml" <<END
name: deferred-$1
model: {file: graph.yaml}
cluster: {flat: {devices: 4, bandwidth: 1 GB/s}}
data: {batch: 16}
plan: {stages: 2, pipelines: 2, micro_batches: 8, warmup: schedule, bucket_size: 1 MiB, hiding: update, deferred_weights: $1}
END
  rm -f "$out/deferred-$1.svg"
  "$millrace" simulate "$work/experiment.yaml" --svg "$out/deferred-$1.svg" --quiet > /dev/null
}

deferred 0
deferred 4
