#!/usr/bin/env bash
# How many instructions each operation takes, beside what was recorded.
#
#     benches/instructions.sh             fails if one takes over 3 % more than recorded
#     benches/instructions.sh --record    records what they take now
#
# It asks for valgrind. A time says little on a busy machine, a count is the same as on an idle one:
# so a path that gets a little slower is seen.

set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."

recorded=benches/instructions.txt
again="benches/instructions.sh --record"
# In per cent.
tolerance=3
# What two runs differ by is the operations alone, without the start and what an operation needs.
# By a multiple of 128, since what is done now and then is done once in so many: by Tokio, that a
# task lets others run, by the map of the holes, that it frees what was removed, and by a stripe,
# that it is filled.
few=1024
many=11264

die() {
    printf 'instructions: %s\n' "$*" >&2
    exit 1
}

# What the counts depend on beside the source and the locked dependencies. The C library copies and
# allocates, of which there is much where holes are about.
conditions() {
    printf '# %s\n' "$(rustc --version)"
    printf '# target: %s\n' "$(rustc -vV | sed -n 's/^host: //p')"
    printf '# C library: %s\n' "$(getconf GNU_LIBC_VERSION 2>/dev/null || printf 'unknown')"
}

# Builds the program and says where it is. Without anybody's own flags, for another processor say.
build() {
    RUSTFLAGS="" cargo build --release --locked --manifest-path benches/peers/Cargo.toml \
        --bin instructions --message-format json-render-diagnostics |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}

# The instructions of a whole run. By cachegrind without its caches, which counts fastest.
count() {
    local output refs
    output=$(valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null \
        "$program" "$@" 2>&1) || die "failed: $* "$'\n'"$output"
    refs=$(sed -n 's/.* I *refs: *\([0-9,]*\)$/\1/p' <<<"$output" | tr -d ,)
    [[ -n $refs ]] || die "valgrind did not say how many: $* "$'\n'"$output"
    printf '%s' "$refs"
}

# A line for each operation: its name and its instructions.
measure() {
    local operation first second
    for operation in $operations; do
        first=$(count "$operation" "$few")
        second=$(count "$operation" "$many")
        awk -v name="$operation" -v more=$((second - first)) -v times=$((many - few)) \
            'BEGIN { printf "%s %.1f\n", name, more / times }'
    done
}

# Prints them beside those recorded; fails if one takes more, or stands on one side only.
compare() {
    awk -v tolerance="$tolerance" -v again="$again" '
        function row(name, before, now, change, note) {
            printf "%-22s %9s %9s %8s%s\n", name, before, now, change, note
        }
        BEGIN { row("operation", "recorded", "now", "change", "") }
        /^#/ { next }
        side == "recorded" { before[$1] = $2; next }
        { now[$1] }
        !($1 in before) { row($1, "-", $2, "-", "  NOT RECORDED"); unlike++; next }
        {
            change = ($2 / before[$1] - 1) * 100
            note = ""
            if (change > tolerance) { note = "  MORE"; more++ }
            if (change < -tolerance) { note = "  less"; less++ }
            row($1, before[$1], $2, sprintf("%+.1f %%", change), note)
        }
        END {
            for (name in before) if (!(name in now)) {
                row(name, before[name], "-", "-", "  NO SUCH OPERATION")
                unlike++
            }
            if (more) printf "\n%d over %s %% more than recorded. If it must be: %s\n",
                more, tolerance, again
            if (less) printf "\n%d over %s %% less than recorded. Keep that: %s\n",
                less, tolerance, again
            if (unlike) printf "\n%d in the program or in the record only. Record again: %s\n",
                unlike, again
            exit more + unlike > 0
        }
    ' side=recorded "$recorded" side=now -
}

case "$*" in
"" | --record) ;;
*) die "usage: benches/instructions.sh [--record]" ;;
esac
command -v valgrind >/dev/null || die "there is no valgrind"

program=$(build)
operations=$("$program")
measured=$(measure)

if [[ ${1-} == --record ]]; then
    {
        printf '# Instructions of each operation. Record again: %s\n' "$again"
        conditions
        printf '%s\n' "$measured"
    } >"$recorded"
    cat "$recorded"
elif [[ ! -e $recorded ]]; then
    printf '%s\n' "$measured"
    die "nothing is recorded yet: $again"
elif [[ $(sed -n 2,4p "$recorded") != "$(conditions)" ]]; then
    printf '%s\n' "$measured"
    printf '\nNot compared: these counts are of another compiler, target or C library.\n'
    printf 'Here:\n%s\nRecorded:\n%s\n' "$(conditions)" "$(sed -n 2,4p "$recorded")"
else
    compare <<<"$measured"
fi
