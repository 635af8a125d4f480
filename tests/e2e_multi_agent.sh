#!/usr/bin/env bash
# Three agents and a server on PostgreSQL and S3, without Docker: the partitions of a topic are spread over the agents,
# one agent is killed, the others take over, and nothing is lost. Ends with 0 only if all of that was seen.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
export PYTHONPATH="$root/tests${PYTHONPATH:+:$PYTHONPATH}"
work=$(mktemp -d)
topic=orders
records=600
declare -A pids=()

streamhouse() { "$python" -m streamhouse "$@"; }
say() { printf '\n== %s\n' "$*"; }
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    for log in "$work"/*.err; do
        printf -- '-- %s\n' "${log##*/}" >&2
        tail -n 20 "$log" >&2
    done
    exit 1
}

clean_up() {
    # Nodes first: they drain into the services.
    for name in "${!pids[@]}"; do
        [ "$name" = services ] || kill -TERM "${pids[$name]}" 2>/dev/null || true
    done
    for name in "${!pids[@]}"; do
        [ "$name" = services ] || wait "${pids[$name]}" 2>/dev/null || true
    done
    if [ -n "${pids[services]:-}" ]; then
        kill -TERM "${pids[services]}" 2>/dev/null || true
        wait "${pids[services]}" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

until_true() { # until_true WHAT COMMAND...: within a minute, or it hangs
    local what=$1 deadline=$((SECONDS + 60))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || fail "waited in vain for $what"
        sleep 0.2
    done
}

start() { # start NAME ARGUMENTS...: a node in the background
    local name=$1
    shift
    "$python" -m streamhouse "$@" --host 127.0.0.1 --kafka-port 0 --http-port 0 --grpc-port 0 --flume-port 0 --data-dir "$work/$name" \
        >"$work/$name.out" 2>"$work/$name.err" &
    pids[$name]=$!
}

is_ready() { grep -q '^ready ' "$work/$1.out" || { kill -0 "${pids[$1]}" 2>/dev/null || fail "$1 ended"; false; }; }
kafka_of() { sed -n 's/^ready .*kafka=\([^ ]*\).*/\1/p' "$work/$1.out"; }

leaders() { # the leader of each partition, one to a line, "-" for none
    streamhouse partition list "$topic" --json | "$python" -c '
import json, sys
for row in sorted(json.load(sys.stdin), key=lambda row: row["partition"]):
    print(row["leader"] if row["lease_left_ms"] > 0 else "-")'
}
leads_something() { grep -qx "$1" <<<"$(leaders)"; }
led_by_exactly() { # led_by_exactly NUMBER NAMES...: as many partitions, each led by one of these agents
    local number=$1 found
    shift
    found=$(leaders)
    [ "$(wc -l <<<"$found")" -eq "$number" ] && ! grep -qvxE "$(IFS='|' && echo "$*")" <<<"$found"
}
led_by_several() { [ "$(leaders | grep -vx -- - | sort -u | wc -l)" -gt 1 ]; }
find_victim() { # the leader of partition 0, unless its lease has just run out
    victim=$(leaders)
    victim=${victim%%$'\n'*}
    [[ $victim == agent-* ]]
}

say "PostgreSQL and an S3 server"
"$python" -m services.storage "$work/settings" >"$work/services.out" 2>"$work/services.err" &
pids[services]=$!
until_true "the services" test -e "$work/settings"
# shellcheck disable=SC1091
. "$work/settings"
export STREAMHOUSE_LEASE_TTL=3s STREAMHOUSE_LEASE_RENEWAL=1s STREAMHOUSE_HEARTBEAT=1s STREAMHOUSE_LIVENESS=5s
export STREAMHOUSE_REBALANCE=2s

say "three agents, each in a zone of its own, and a server that leads nothing"
for number in 1 2 3; do
    start "agent-$number" agent --agent-id "agent-$number" --zone "zone-$number" --durability object
done
DISABLE_EMBEDDED_AGENT=1 start server serve
for name in agent-1 agent-2 agent-3 server; do
    until_true "$name" is_ready "$name"
done
STREAMHOUSE_BOOTSTRAP=$(kafka_of server)
export STREAMHOUSE_BOOTSTRAP
streamhouse agent list

say "a topic of six partitions, made through the server"
streamhouse topic create "$topic" --partitions 6
until_true "six leaders" led_by_exactly 6 agent-1 agent-2 agent-3
streamhouse partition list "$topic"
until_true "several agents that lead" led_by_several

say "$records records in, half of them before an agent dies"
seq 1 $((records / 2)) | sed 's/.*/key-&:value-&/' | streamhouse produce "$topic" --key-separator : >/dev/null
[ "$(streamhouse consume "$topic" --from-beginning | sort | uniq | wc -l)" -eq $((records / 2)) ] ||
    fail "not all of the first half came back"

until_true "a leader of partition 0" find_victim
say "kill -9 $victim, which leads partition 0"
kill -KILL "${pids[$victim]}"
wait "${pids[$victim]}" 2>/dev/null || true
unset "pids[$victim]"
survivors=()
for number in 1 2 3; do
    [ "agent-$number" = "$victim" ] || survivors+=("agent-$number")
done
killed_at=$SECONDS
seq $((records / 2 + 1)) "$records" | sed 's/.*/key-&:value-&/' | streamhouse produce "$topic" --key-separator : >/dev/null
until_true "the survivors to lead everything" led_by_exactly 6 "${survivors[@]}"
echo "${survivors[*]} lead all six partitions; all was acknowledged $((SECONDS - killed_at)) s after the kill"
streamhouse partition list "$topic"

say "everything is there, once"
streamhouse consume "$topic" --from-beginning | sort >"$work/read"
seq 1 "$records" | sed 's/.*/value-&/' | sort >"$work/sent"
diff -u "$work/sent" "$work/read" >&2 || fail "what was read is not what was sent"
streamhouse cluster verify || fail "cluster verify found violations"

say "$victim comes back and takes part"
start "$victim" agent --agent-id "$victim" --zone "zone-${victim#agent-}" --durability object
until_true "$victim" is_ready "$victim"
until_true "$victim to lead again" leads_something "$victim"
streamhouse consume "$topic" --from-beginning | sort | diff -u "$work/sent" - >&2 || fail "something changed"

say "an orderly end"
for name in "$victim" "${survivors[@]}" server; do
    kill -TERM "${pids[$name]}"
    wait "${pids[$name]}" || fail "$name ended with $?"
    unset "pids[$name]"
done
unset STREAMHOUSE_BOOTSTRAP # nobody is there to ask: what is stored says it
streamhouse cluster verify || fail "cluster verify found violations after the end"
echo "passed"
