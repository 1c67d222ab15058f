#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Like test_abandoned.sh, for crews in which each worker trains alone for a while: local steps, peers, and parameter servers
# with a chief, workers and an evaluator that each have work that does not end. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/abandoned.sh"

# ---- local steps: rounds end at steps 3, 6, …, and the second round does not

rounds="MultiWorkerMirrored, localSteps: 3"
strategy=$rounds job rounds
crew rounds 2
verdict $? "local steps that nobody disturbs" "$(tails rounds)"
standing round "$rounds" 3
kill -TERM "${pids[@]}"
await "${pids[0]}"
has_abandoned $? round.0.log "step 4 of 12"
verdict $? "a round that does not end is abandoned" "$(tails round)"
left round 1 && [[ $(saved_step round) == 3 ]]
verdict $? "and its beginning saved" "$(tails round) $(ls round)"
undelay round
crew round 2 && same_weights round rounds
verdict $? "a later start ends in the bits of the undisturbed" "$(tails round)"

# ---- peers

# has_finished NAME SEAT EXAMPLES
has_finished() {
    grep -qs "^peer [^ ]* [^ ]* finished $2 $3$" "$1.record"
}

standing peers PeerToPeer 1
until_true 60 has_finished peers 0 160 && until_true 60 has_finished peers 1 160
verdict $? "both peers stand in their sixth step" "$(grep peer peers.record)"
kill -TERM "${pids[0]}"
await "${pids[0]}"
has_abandoned $? peers.0.log "step [0-9]* of 12"
verdict $? "a peer, the chief, abandons its step" "$(tails peers)"
has_saved peers 2 && grep -qs '"replicas":"2 of 2"' peers/step-*/manifest.json
verdict $? "and has saved the mean of all" "$(tails peers) $(ls peers)"
kill -TERM "${pids[1]}"
await "${pids[1]}"
has_abandoned $? peers.1.log "step [0-9]* of 12"
verdict $? "another peer abandons its step, too" "$(tails peers)"
undelay peers
crew peers 2
verdict $? "a later start goes on from there to the end" "$(tails peers)"

# ---- parameter servers

# serving NAME CLUSTER ROLE…: a crew that the script tells, by role and index
serving() {
    local name=$1
    cluster=$2
    pids=()
    strategy="ParameterServer, mode: Async" job "$name"
    shift 2
    while (($# > 0)); do
        export COXSWAIN_RECORD=$work/$name.$1$2.record
        start_member "$name" "$1" "$2"
        shift 2
    done
}

# stands_in_share NAME INDEX: that worker in its third
stands_in_share() {
    (($(grep -c '^share ' "$1.worker$2.record" 2>/dev/null) + 0 >= 3))
}

workers="\"worker\":$(hosts 1 2),\"ps\":$(hosts 101 1)"
echo 0 0 86400000 | tee share.0.delay >share.1.delay
serving share "{$workers}" ps 0 worker 0 worker 1
until_true 60 stands_in_share share 0 && until_true 60 stands_in_share share 1
kill -TERM "${pids[1]}"
await "${pids[1]}"
has_abandoned $? share.1.log "a share"
verdict $? "a servers' worker abandons a share that does not end" "$(tails share)"
undelay share
await "${pids[0]}" "${pids[100]}"
verdict $? "and the others finish it" "$(tails share)"

# Nothing here may take the servers' patience.
export COXSWAIN_GRACE_SECONDS=20
echo 0 0 86400000 | tee drained.0.delay >drained.1.delay
serving drained "{$workers}" ps 0 worker 0 worker 1
until_true 60 stands_in_share drained 0 && until_true 60 stands_in_share drained 1
kill -TERM "${pids[@]}"
left drained 0 && left drained 1 && left drained 100
verdict $? "a crew with servers leaves as a whole, whatever its workers stand in" "$(tails drained)"
grep -q "a share did not end within a quarter of the grace period (20 s) and was abandoned" drained.0.log && has_saved drained
verdict $? "and its chief has saved what the servers hold" "$(tails drained) $(ls drained)"

# A chief of its own reads examples for its evaluations alone.
echo 86400000 >tested-2.chief.delay
evaluates=2 serving tested-2 "{\"chief\":$(hosts 50 1),$workers}" ps 0 chief 0 worker 0 worker 1
until_true 60 grep -qs '^applied [^ ]* [^ ]* [0-9]* 2 ' tested-2.chief0.record
kill -TERM "${pids[200]}"
await "${pids[200]}"
has_abandoned $? tested-2.chief.log "the evaluation after step [0-9]* of 12" "a quarter"
verdict $? "a servers' chief abandons an evaluation that does not end" "$(tails tested-2)"
has_saved tested-2 2
verdict $? "and has saved what the servers hold" "$(tails tested-2) $(ls tested-2)"
end_crew KILL

export COXSWAIN_GRACE_SECONDS=2
echo 86400000 >reference.evaluator.delay
serving reference "{\"chief\":$(hosts 50 1),$workers,\"evaluator\":$(hosts 60 1)}" evaluator 0
until_true 60 grep -qs 'rank-00000.safetensors' "/proc/${pids[300]}/maps"
kill -TERM "${pids[300]}"
await "${pids[300]}"
has_abandoned $? reference.evaluator.log "an evaluation"
verdict $? "an evaluator abandons its evaluation" "$(tail -n 1 reference.evaluator.log)"
