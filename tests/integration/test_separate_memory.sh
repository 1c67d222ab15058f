#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ParameterServer with processes that share no memory, as on nodes of their own: values and gradients are sent on lines, the
# bits are those of one device, and a server that is frozen or killed meanwhile stops no worker for good. Prints ok/not ok
# lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

# launch NAME LOG: becomes the worker, with memory of its own to share
launch() {
    # shellcheck disable=SC2016 # for the shell that is started
    COXSWAIN_READ_DELAY=${2%.log}.delay exec unshare --mount sh -c 'mount -t tmpfs none /dev/shm && exec "$@"' sh \
        "$worker" --job "$1.yaml" --storage runs="$work" "${worker_options[@]}" >>"$2" 2>&1
}

if ! unshare --mount sh -c 'mount -t tmpfs none /dev/shm' 2>/dev/null; then
    echo "skip separate memory: this machine lets nobody mount a file system of his own"
    exit 0
fi

# job NAME STRATEGY STEPS: writes its document, with a model that has parts large enough for lines
job() {
    cat >"$1.yaml" <<YAML
name: $1
model: {preset: mlp, width: 256}
data: {format: Synthetic, examples: 1000}
training: {steps: $3, batchSize: 20, logicalShards: 2, seed: 3, optimizer: {type: SGD, learningRate: "0.001"}}
strategy: {$2}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 20}
export: {storage: runs, path: $1.safetensors}
YAML
}

# is_lined: a worker has a line to a server (2223, as the kernel lists it: 08AF)
is_lined() {
    local bytes
    IFS=. read -r -a bytes <<<"$network.101"
    grep -q " $(printf '%02X' "${bytes[3]}" "${bytes[2]}" "${bytes[1]}" "${bytes[0]}"):08AF 01 " /proc/net/tcp
}

job alone 'type: OneDevice' 40
lone alone
job together 'type: ParameterServer, mode: Synchronous' 40
crew together 2 2 && same_weights together alone
verdict $? "values that travel on lines have the bits of one device" "$(tails together)"

job struck 'type: ParameterServer, mode: Async' 1000000
start_crew struck 2 2
until_true 60 has_saved struck && is_lined
verdict $? "they do travel on lines" "$(tails struck)"

kill -STOP "${pids[100]}"
until_true 60 grep -q 'waiting for ps 0' struck.0.log
verdict $? "a server that is frozen is named" "$(tails struck)"
kill -CONT "${pids[100]}"
frozen=$(saved_step struck)
until_true 60 has_saved struck $((frozen + 60))
verdict $? "and when it goes on, so do all" "from step $frozen: $(tails struck)"

kill -KILL "${pids[100]}"
wait "${pids[100]}" 2>/dev/null
start_member struck ps 0 1
killed=$(saved_step struck)
until_true 60 has_saved struck $((killed + 60)) && is_lined
verdict $? "one that is killed has a successor, and lines to it" "from step $killed: $(tails struck)"
end_crew KILL
