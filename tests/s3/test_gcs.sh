#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Buckets of Google Cloud Storage: a server that obeys its documented rules (gcs.py) stands for it, reached under Google's own name. A write
# under a condition, objects in parts, and two chiefs of one job, of which the older one commits nothing. Prints ok/not ok lines (see
# tests/run).
set -uo pipefail

if ! command -v python3 >/dev/null; then
    echo "skip gcs: python3 is not installed"
    exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(cd "${BUILD:?}" && pwd)
work=$(mktemp -d)
server=''
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/integration/verdict.sh"

python3 "$root/tests/s3/gcs.py" requests.log >port 2>server.errors &
server=$!
until_true 10 test -s port
# Google's name reaches our server; a worker's own connections do not go there.
http_proxy=http://127.0.0.1:$(<port)
no_proxy=127.0.0.1,127.0.0.2
export http_proxy no_proxy
mkdir credentials
printf 'GOOG1EXAMPLE' >credentials/AWS_ACCESS_KEY_ID
printf 'the-secret-of-the-test' >credentials/AWS_SECRET_ACCESS_KEY
endpoint=http://storage.googleapis.com

storage() {
    "$bin/coxswain-storage" --endpoint "$endpoint" --bucket runs --credentials "$work/credentials" --patience 5 "$@"
}

head -c 40000000 /dev/urandom >large
echo first >first
echo second >second
storage put large 'a folder/large~file' 2>said && storage get 'a folder/large~file' back 2>>said && cmp large back &&
    grep -q 'POST.*uploads' requests.log
verdict $? "an object in parts arrives, and comes back" "$(cat said server.errors; tail -n 3 requests.log)"

storage put first name --if-absent 2>said
first=$?
storage put second name --if-absent 2>>said
second=$?
storage get name back 2>>said
[[ $first == 0 && $second == 3 && $(<back) == first ]] && grep -q 'PUT .*/runs/name 0 412' requests.log
verdict $? "a write under a condition fails if there is such an object" "$first $second $(cat said); $(tail -n 3 requests.log)"
storage put second name 2>said && storage get name back 2>>said && [[ $(<back) == second ]]
verdict $? "one without replaces it" "$(cat said)"

won=0 pids=()
for i in {1..8}; do
    echo "$i" >"writer$i"
    storage put "writer$i" fence --if-absent 2>"writer$i.said" &
    pids+=($!)
done
for pid in "${pids[@]}"; do
    if wait "$pid"; then ((won += 1)); fi
done
[[ $won == 1 ]]
verdict $? "of eight writers at once one wins" "$won: $(cat writer*.said)"

for i in {1..130}; do echo "$i"; done | xargs -P 8 -I{} "$bin/coxswain-storage" --endpoint "$endpoint" --bucket runs --credentials "$work/credentials" put first 'many/{}'
[[ $(storage list many/ | wc -l) == 130 ]] && storage remove many/1 && [[ $(storage list many/ | wc -l) == 129 ]]
verdict $? "listings of several pages, and removal" "$(storage list many/ | wc -l)"

echo third >third
endpoint=http://storage.example.com storage put third name --if-absent 2>said && storage get name back 2>>said && [[ $(<back) == third ]]
verdict $? "under another name the condition is that of S3, which this server ignores" "$(cat said back)"

# ---- two chiefs

# chief INCARNATION ADDRESS ENDPOINT: one process by hand, of the same job
chief() {
    COXSWAIN_JOB_UID=two-chiefs COXSWAIN_INCARNATION=$1 COXSWAIN_ATTEMPT=1 COXSWAIN_POD_IP=$2 COXSWAIN_CHECKPOINT_DIR=$work/chief$1 \
        COXSWAIN_CHECKPOINT_S3="{\"endpoint\":\"$3\",\"bucket\":\"runs\",\"prefix\":\"two\",\"credentials\":\"$work/credentials\"}" \
        COXSWAIN_READ_DELAY=$work/delay$1 COXSWAIN_TERMINATION_LOG=$work/chief$1.message \
        "$bin/coxswain-worker" --job two.yaml --storage runs="$work" --http-port 0 >"chief$1.log" 2>&1
}
cat >two.yaml <<YAML
model: {preset: mlp, width: 64}
data: {format: Synthetic, examples: 1000}
training: {steps: 30, batchSize: 20, seed: 7, optimizer: {type: AdamW, learningRate: "0.001"}}
strategy: {type: OneDevice}
storage: [{name: runs}]
checkpoint: {storage: runs, everySteps: 10, path: two}
YAML

# has_saved STEP INCARNATION
has_saved() {
    [[ $(storage list two/ | grep -c "two/step-000000$1.attempt-1.incarnation-$2/manifest.json") == 1 ]]
}
echo 300 >delay1
chief 1 127.0.0.1 $endpoint &
first=$!
until_true 60 has_saved 10 1
verdict $? "a chief saves to the bucket" "$(tail -n 3 chief1.log server.errors)"
chief 2 127.0.0.2 $endpoint && has_saved 30 2 && grep -q 'resumes from the checkpoint of step [12]0' chief2.log
verdict $? "a second chief takes over, and goes on from the first one's checkpoint" "$(tail -n 3 chief2.log)"
wait "$first"
[[ $? == 163 ]] && ! has_saved 30 1 && grep -q 'a newer chief (incarnation 2) has taken over' chief1.log
verdict $? "the first one commits nothing more, and ends as superseded" "$(tail -n 3 chief1.log; storage list two/)"

! chief 3 127.0.0.1 http://storage.example.com && grep -q 'overwrites objects despite the condition' chief3.log
verdict $? "a chief does not start where a condition has no effect" "$(tail -n 3 chief3.log)"
