#!/usr/bin/env bash
# What the layer costs: requests per second of examples/axum_api without it and with it, under wrk, in
# runs that alternate; the ratio of each pair, and the median of those. Beside it the processor time that
# the server takes for a request, which says the same on a machine that is busy with other work.
#
#     benches/axum_overhead.sh [pairs] [seconds per run]
#
# `limited` has one policy per client that nobody reaches; `told` the same, and all answers tell what is
# left. Nothing fails because of a time.

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

# The processor time of a process so far, in ticks of 10 ms.
ticks() {
    awk '{ print $14 + $15 }' "/proc/$1/stat"
}

# Requests per second, and microseconds of processor time for each.
run() {
    local port=$1 server=$2 before
    before=$(ticks "$server")
    wrk -t1 -c32 -d"${seconds}s" "http://127.0.0.1:$port/" |
        awk -v before="$before" -v stat="/proc/$server/stat" '
            /requests in/ { requests = $1 }
            /^Requests\/sec/ { rate = $2 }
            END {
                getline line < stat
                split(line, fields, " ")
                print rate, (fields[14] + fields[15] - before) * 10000 / requests
            }'
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

column() {
    cut -d' ' -f"$1" "$results"
}

start bare
bare=("$port" "${servers[-1]}")
run "${bare[@]}" >/dev/null
results=$(mktemp)
trap 'kill "${servers[@]}" 2>/dev/null || true; rm -f "$results"' EXIT

# A server of that kind beside the bare one.
compare() {
    local kind=$1 pair one other with
    start "$kind"
    with=("$port" "${servers[-1]}")
    run "${with[@]}" >/dev/null
    for ((pair = 1; pair <= pairs; pair++)); do
        # Each of them is first as often as the other.
        if ((pair % 2)); then
            one=$(run "${bare[@]}") other=$(run "${with[@]}")
        else
            other=$(run "${with[@]}") one=$(run "${bare[@]}")
        fi
        echo "$one $other"
    done | awk '{ print $1, $2, $3, $4, $3 / $1, $4 / $2 }' >"$results"
    printf 'bare     %8.0f requests/s, %6.2f us of processor time each\n' \
        "$(column 1 | median)" "$(column 2 | median)"
    printf '%-8s %8.0f requests/s, %6.2f us\n' "$kind" "$(column 3 | median)" "$(column 4 | median)"
    printf 'ratio    %8.4f requests/s, the middle half %s\n' \
        "$(column 5 | median)" "$(column 5 | quartiles)"
    printf '         %8.4f us, the middle half %s\n\n' \
        "$(column 6 | median)" "$(column 6 | quartiles)"
}

printf 'medians of %d pairs of runs of %d s:\n' "$pairs" "$seconds"
compare limited
compare told
