#!/usr/bin/env bash
# What the layer costs: requests per second of examples/axum_api without it and with it, under wrk, in
# runs that alternate; the ratio of each pair, and the median of those.
#
#     benches/axum_overhead.sh [pairs] [seconds per run]
#
# `limited` has one policy per client that nobody reaches, whose state all answers tell. Nothing fails
# because of a time.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pairs=${1:-15}
seconds=${2:-2}

command -v wrk >/dev/null || { echo "there is no wrk: apt-get install wrk"; exit 1; }

cargo build --release --features http --example axum_api
program=${CARGO_TARGET_DIR:-target}/release/examples/axum_api

servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true' EXIT

# Starts a server of that kind on the next port that is free.
port=18080
start() {
    local kind=$1 server
    while :; do
        port=$((port + 1))
        "$program" "127.0.0.1:$port" "$kind" 2>/dev/null &
        server=$!
        for _ in {1..50}; do
            kill -0 "$server" 2>/dev/null || break
            if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
                servers+=("$server")
                return
            fi
            sleep 0.1
        done
    done
}

run() {
    wrk -t1 -c32 -d"${seconds}s" "http://127.0.0.1:$1/" | awk '/^Requests\/sec/ { print $2 }'
}

median() {
    sort -n | awk '{ all[NR] = $1 } END {
        print NR % 2 ? all[(NR + 1) / 2] : (all[NR / 2] + all[NR / 2 + 1]) / 2
    }'
}

quartiles() {
    sort -n | awk '{ all[NR] = $1 } END {
        print all[int((NR + 3) / 4)] " to " all[int((3 * NR + 3) / 4)]
    }'
}

start bare
bare=$port
start limited
limited=$port
run "$bare" >/dev/null
run "$limited" >/dev/null

results=$(mktemp)
trap 'kill "${servers[@]}" 2>/dev/null || true; rm -f "$results"' EXIT
for ((pair = 1; pair <= pairs; pair++)); do
    # Each of them is first as often as the other.
    if ((pair % 2)); then
        one=$(run "$bare") other=$(run "$limited")
    else
        other=$(run "$limited") one=$(run "$bare")
    fi
    echo "$one $other"
done | awk '{ print $1, $2, $2 / $1 }' >"$results"

printf 'bare     %10.0f requests/s, median of %d runs of %d s\n' \
    "$(cut -d' ' -f1 "$results" | median)" "$pairs" "$seconds"
printf 'limited  %10.0f requests/s\n' "$(cut -d' ' -f2 "$results" | median)"
printf 'limited/bare %.4f, the middle half of the pairs %s\n' \
    "$(cut -d' ' -f3 "$results" | median)" "$(cut -d' ' -f3 "$results" | quartiles)"
