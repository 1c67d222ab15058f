#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How processes of ParameterServer end when something is wrong: with the codes that a lone worker has for it. And data that no
# model can learn, under every way of training. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
make_digits

# job NAME [WIDTH [MORE]]: one worker and one ps; MORE lines of the document. The caller may set labels, strategy and checkpoint
# (more members of it).
job() {
    cat >"$1.yaml" <<YAML
name: $1
strategy: {type: ${strategy:-ParameterServer}}
workers: {replicas: 1}
model: {preset: mlp, width: ${2:-96}}
data:
  format: ${format:-IDX}
  train: {images: $work/${images:-images}, labels: $work/${labels:-labels}}
training: {steps: 4, batchSize: 20, seed: 3, optimizer: {type: SGD, learningRate: "0.001"}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${path:-$1}${checkpoint:-}}
${3:-}
YAML
}

# ends CODE WORDS WHAT NAME INDEX: this process of the crew ends with CODE and WORDS; the others are killed
ends() {
    ended_with "$1" "$2" "$4" "$5"
    verdict $? "exit $1: $3" "got $ended"
    end_crew KILL
}

job first 96
start_crew first 1 1
await "${pids[@]}"
verdict $? "one worker and one ps train" "$(tails first)"

mkdir -p blocked.safetensors/not-empty
job unexported 96 'export: {storage: runs, path: blocked.safetensors}'
start_crew unexported 1 1
ends 74 'blocked' "an export that cannot be written" unexported 0

# The ps may write no file of more than 64 KiB, and its share has 300.
job full
cluster="{\"worker\":$(hosts 1 1),\"ps\":$(hosts 101 1)}" pids=()
start_member full worker 0
worker_of_full=${pids[0]}
(ulimit -f 64 && TF_CONFIG="{\"cluster\":$cluster,\"task\":{\"type\":\"ps\",\"index\":0}}" launch full full.ps0.log) &
pids=("$worker_of_full") pids[100]=$!
ends 74 'final checkpoint' "a final checkpoint that a ps cannot store" full 0

checkpoint=', required: true' job required
start_crew required 1 1
ends 66 'no usable checkpoint' "a checkpoint is required, and none is there" required 0

rm -rf damaged && cp -r first damaged
for file in damaged/step-*/*.safetensors; do printf 'x' | dd of="$file" bs=1 seek=2000 conv=notrunc status=none; done
checkpoint=', required: true' job damaged
start_crew damaged 1 1
ends 66 'no usable checkpoint' "all that are there are damaged" damaged 0

path=first job other 32
sed -i 's/steps: 4/steps: 8/' other.yaml
start_crew other 1 1
ends 66 'does not fit this job' "a checkpoint of another model" other 100

job uninitialised 96 'init: {path: '"$work"'/nowhere.safetensors}'
start_crew uninitialised 1 1
ends 66 'nowhere' "weights to start from that are missing" uninitialised 100

# ---- a label that is no class

perl -e '
    sub npy { my ($path, $type, $shape, $data) = @_;
        my $head = sprintf "{\"descr\": \"%s\", \"fortran_order\": False, \"shape\": (%s), }", $type, $shape; $head =~ tr/"/\x27/;
        $head .= " " x (117 - length $head) . "\n";
        open my $f, ">", $path or die; binmode $f; print $f "\x93NUMPY\x01\x00", pack("v", length $head), $head, $data; close $f }
    npy("strange.npy", "<f4", "40, 28, 28, 1", "\0" x (40 * 784 * 4));
    npy("stranger.npy", "<i4", "40,", pack "l<*", (map { $_ % 10 } 0 .. 38), 99);'
format=NPY images=strange.npy labels=stranger.npy
strategy=OneDevice job alone
refused 65 'label' alone
strategy=PeerToPeer job peer
refused 65 'label' peer
job served
start_crew served 1 1
ends 65 'label' "a label that is no class, and parameter servers" served 0
