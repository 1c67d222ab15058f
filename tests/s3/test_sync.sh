#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A folder that is kept in a bucket of a real S3 server (storage/sync.h): only complete checkpoints are restored, whatever request the upload
# is killed at; one writer; removals; faults.
# Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/s3/server.sh"
finish_also() {
    s3_end
}
s3_start
proxy_start

# The programs under test go through the proxy, the test's own requests do not.
through_proxy() {
    endpoint=$proxy_endpoint storage "$@"
}
# start_sync PREFIX FOLDER [OPTION…]: in the background, as $syncing
start_sync() {
    through_proxy sync "$2" --prefix "$1" --settle 1 --interval 1 --patience 5 "${@:3}" 2>>"$2.log" &
    syncing=$!
}
process_below() {
    pgrep -P "$1" | head -n 1
}
# end_sync [SIGNAL]: returns the exit status
end_sync() {
    kill "-${1:-TERM}" "$(process_below "$syncing")"
    wait "$syncing" 2>/dev/null
}
# restored PREFIX: the files that a restore gives, in a line
restored() {
    rm -rf back && mkdir back && storage restore back --prefix "$1" 2>back.log && (cd back && find . -type f | sed 's:^\./::' | sort | tr '\n' ' ')
}
has_object() {
    storage list "$1" | grep -q " $1\$"
}
is_pending() {
    storage list "$1/.coxswain-sync/pending/" | grep -q "$2\$"
}
# checkpoint FOLDER STEP: as the Trainer of Hugging Face writes it
checkpoint() {
    mkdir -p "$1/checkpoint-$2/sub" && head -c 3000000 /dev/urandom >"$1/checkpoint-$2/model.safetensors" && echo args >"$1/checkpoint-$2/training_args.bin" &&
        echo "$2" >"$1/checkpoint-$2/sub/rng" && sleep 0.02 && echo "{\"global_step\": $2}" >"$1/checkpoint-$2/trainer_state.json"
}
whole() {
    echo "checkpoint-$1/model.safetensors checkpoint-$1/sub/rng checkpoint-$1/trainer_state.json checkpoint-$1/training_args.bin "
}

# ---- a whole life of a folder
mkdir a
[[ $(restored a) == "" ]]
verdict $? "an empty bucket is restored as an empty folder" "$(cat back.log)"
start_sync a a
checkpoint a 1
until_true 15 has_object a/checkpoint-1/trainer_state.json && until_true 5 eval '! is_pending a checkpoint-1' && [[ $(restored a) == "$(whole 1)" ]] &&
    diff -r a back
verdict $? "a checkpoint is uploaded while the program runs, and restored byte for byte" "$(cat a.log; storage list a)"
grep 'PUT .*checkpoint-1/' proxy.log | grep -v pending | tail -n 1 | grep -q trainer_state
verdict $? "the file that completes it is uploaded last" "$(cut -c1-120 proxy.log)"
mkdir -p a/checkpoint-2 && echo half >a/checkpoint-2/model.safetensors && echo args >a/checkpoint-2/training_args.bin
until_true 10 grep -q 'a checkpoint is not uploaded.*checkpoint-2' a.log && [[ $(restored a) == "$(whole 1)" ]] && ! has_object a/checkpoint-2/model.safetensors
verdict $? "one without its last file is not uploaded, and named" "$(cat a.log)"
checkpoint a 3
end_sync && [[ $(restored a) == "$(whole 1)$(whole 3)" ]] && cmp a/checkpoint-3/model.safetensors back/checkpoint-3/model.safetensors
verdict $? "SIGTERM uploads what has just been written, but not what is incomplete" "$(cat a.log; storage list a)"

# ---- killed at each request of an upload: what is restored is complete
kills=0 wrong=''
for ((skip = 0; ; skip++)); do
    prefix=k$skip
    rm -rf k && mkdir k && checkpoint k 1 && echo checkpoint-1 >k/latest
    proxy_rules '[]'
    start_sync "$prefix" k
    until_true 15 has_object "$prefix/latest"
    proxy_rules "[{\"path\":\"/$prefix/\",\"fault\":\"hang\",\"skip\":$skip,\"times\":1}]"
    : >proxy.log
    checkpoint k 2 && echo checkpoint-2 >k/latest
    if until_true 8 grep -q ' hang' proxy.log; then
        end_sync KILL
        kills=$((kills + 1))
        got=$(restored "$prefix")
        [[ $got == "$(whole 1)latest " || $got == "$(whole 1)$(whole 2)latest " ]] && [[ -e back/$(<back/latest)/trainer_state.json ]] || wrong+="request $skip: $got; "
    else
        end_sync
        break
    fi
done
((kills >= 7)) && [[ ! $wrong ]]
verdict $? "killed at each of $kills requests of an upload: only whole checkpoints, and latest names one of them" "$wrong"

# ---- the next pod goes on where the killed one was
rm -rf n && mkdir n && checkpoint n 1
start_sync n n
until_true 15 has_object n/checkpoint-1/trainer_state.json
until_true 5 eval '! is_pending n checkpoint-1'
proxy_rules '[{"method":"PUT","path":"checkpoint-2/trainer_state","fault":"hang","times":1}]'
checkpoint n 2
until_true 10 grep -q 'checkpoint-2/trainer_state.json hang' proxy.log && end_sync KILL
proxy_rules '[]'
rm -rf m && mkdir m && storage restore m --prefix n 2>m.log && [[ ! -e m/checkpoint-2 ]] && start_sync n m && checkpoint m 2 &&
    until_true 15 eval '! is_pending n checkpoint-2' && [[ $(restored n) == "$(whole 1)$(whole 2)" ]] && cmp m/checkpoint-2/model.safetensors back/checkpoint-2/model.safetensors
verdict $? "a successor writes the same checkpoint again, and completes it" "$(cat m.log; storage list n)"
: >proxy.log
end_sync && ! grep -q 'PUT.*checkpoint-1/' proxy.log
verdict $? "what was restored is not uploaded again" "$(grep PUT proxy.log | cut -c1-100)"

# ---- one writer
rm -rf o p && mkdir o p && checkpoint o 1
start_sync w o
old=$syncing
until_true 15 has_object w/checkpoint-1/trainer_state.json && until_true 5 eval '! is_pending w checkpoint-1'
start_sync w p
two_writers() {
    [[ $(storage list w/.coxswain-sync/writers/ | wc -l) == 2 ]]
}
until_true 10 two_writers
checkpoint o 2
until_true 10 grep -q 'another pod has taken over' o.log && [[ $(restored w) == "$(whole 1)" ]]
verdict $? "a writer that was replaced uploads nothing more" "$(cat o.log; storage list w)"
end_sync
syncing=$old
! end_sync && contains 'another pod has taken over' <o.log
verdict $? "and ends with an error, because what it has written since is not saved" "$(cat o.log)"

# ---- folders of several checkpoints in one unit
proxy_rules '[]'
rm -rf u v && mkdir -p u/out && checkpoint u/out 1
start_sync u u
until_true 15 has_object u/out/checkpoint-1/trainer_state.json && until_true 5 eval '! is_pending u out'
proxy_rules '[{"method":"PUT","path":"checkpoint-2/trainer_state","fault":"hang","times":1}]'
checkpoint u/out 2
until_true 10 grep -q 'u/out/checkpoint-2/trainer_state.json hang' proxy.log && end_sync KILL
proxy_rules '[]'
mkdir v && storage restore v --prefix u 2>v.log && start_sync u v --delete-removed && checkpoint v/out 3 && until_true 15 has_object u/out/checkpoint-3/trainer_state.json
end_sync
restored u >/dev/null
[[ -e back/out/checkpoint-1/trainer_state.json && -e back/out/checkpoint-3/trainer_state.json && ! -e back/out/checkpoint-2 ]]
verdict $? "half a checkpoint stays hidden when its successor uploads another one of the same unit" "$(cat v.log; storage list u; find back)"
start_sync u v --delete-removed
three_writers() {
    [[ $(storage list u/.coxswain-sync/writers/ | wc -l) == 3 ]]
}
until_true 10 three_writers && sleep 2
proxy_rules '[{"method":"DELETE","path":"checkpoint-1/trainer_state","fault":"hang","times":1}]'
rm -r v/out/checkpoint-1
until_true 15 grep -q 'u/out/checkpoint-1/trainer_state.json hang' proxy.log
end_sync KILL
restored u >/dev/null && has_object u/out/checkpoint-1/trainer_state.json && ! has_object u/out/checkpoint-1/model.safetensors && [[ -e back/out/checkpoint-3/model.safetensors && ! -e back/out/checkpoint-1 ]]
verdict $? "and so does one whose removal was interrupted" "$(cat v.log; storage list u; find back)"

# ---- a restore while a writer goes on
proxy_rules '[]'
echo x >x && storage put x r/checkpoint-1/model && storage put x r/checkpoint-2/model && printf 'checkpoint-3\n' >pending
proxy_rules '[{"method":"GET","path":"prefix=r%2F","fault":"delay","seconds":3,"skip":1,"times":1}]'
mkdir r && through_proxy restore r --prefix r 2>r.log &
restoring=$!
sleep 1.5
storage put pending r/.coxswain-sync/pending/checkpoint-3 && storage put x r/checkpoint-3/half
wait "$restoring" && [[ -e r/checkpoint-2/model && ! -e r/checkpoint-3 ]]
verdict $? "a checkpoint that is begun while the objects are listed is not restored" "$(cat r.log; find r; cat proxy.log)"
rm -r r
proxy_rules '[{"method":"GET","path":"/r/checkpoint-2/model","fault":"delay","seconds":4,"times":1}]'
mkdir r && through_proxy restore r --prefix r --connections 1 2>r.log &
restoring=$!
until_true 3 test -e r/checkpoint-1/model
storage remove r/checkpoint-1/model r/checkpoint-2/model
wait "$restoring" && [[ ! -e r/checkpoint-1 && ! -e r/checkpoint-2 ]]
verdict $? "what is removed during a restore is left out, and fails nothing" "$(cat r.log; find r)"

# ---- what a program may put into the folder
mkdir private && echo secret-of-the-sidecar >private/key
rm -rf l && mkdir -p l/unit/part && echo plain >l/unit/part/key
proxy_rules '[{"method":"PUT","path":"l/.coxswain-sync/pending","fault":"delay","seconds":4,"times":1}]'
start_sync l l
sleep 4 && rm -r l/unit/part && ln -s "$work/private" l/unit/part
sleep 3
end_sync
! { has_object l/unit/part/key && storage get l/unit/part/key got && grep -q secret got; }
verdict $? "no symbolic link is followed, even one that appears during an upload" "$(cat l.log; storage list l)"
proxy_rules '[]'
rm -rf h && mkdir h && deep=h/$(printf "%0240d/" 1 2 3 4 5) && mkdir -p "$deep" h/.coxswain-sync/writers && echo x >"$deep/x" && echo x >h/.coxswain-sync/writers/9999999999-mine
sleep 0.1
start_sync h h && checkpoint h 1
until_true 15 has_object h/checkpoint-1/trainer_state.json && until_true 5 eval '! is_pending h checkpoint-1' && ! has_object h/.coxswain-sync/writers/9999999999-mine
verdict $? "a file that the server refuses does not hold up the others, and the objects of the sidecar are not the program's" "$(cut -c1-300 h.log; storage list h)"
! end_sync
verdict $? "and the sidecar ends with an error, because one file is not saved" "$(cut -c1-300 h.log)"
rm -rf q && mkdir -p q/out && echo x >q/out/model
start_sync q q
write_all_the_time() {
    while sleep 0.2; do date +%N >q/out/metrics.csv; done
}
write_all_the_time &
writing=$!
until_true 60 grep -q 'changes all the time.*out/metrics.csv' q.log && ! has_object q/out/model
verdict $? "a file that never settles is named" "$(cat q.log; storage list q)"
kill "$writing" && wait "$writing" 2>/dev/null
end_sync
has_object q/out/model
verdict $? "and what it holds up is uploaded at the end" "$(cat q.log; storage list q)"

# ---- removals
proxy_rules '[]'
rm -rf d && mkdir d && checkpoint d 1 && echo by-hand | tee other >/dev/null && storage put other d/by-hand
start_sync d d --delete-removed
until_true 15 has_object d/checkpoint-1/trainer_state.json
checkpoint d 2 && rm -r d/checkpoint-1
until_true 20 eval '! has_object d/checkpoint-1/trainer_state.json && ! is_pending d checkpoint' && [[ $(restored d) == "by-hand $(whole 2)" ]] &&
    [[ $(grep -n 'PUT.*d/checkpoint-2/trainer_state' proxy.log | tail -n 1 | cut -d: -f1) -lt $(grep -n 'DELETE.*d/checkpoint-1/model' proxy.log | cut -d: -f1) ]]
verdict $? "an object goes when its file does, after the newer checkpoint is there; those of others stay" "$(cat d.log; storage list d; grep -n 'DELETE\|PUT' proxy.log | cut -c1-100 | tail -n 20)"
end_sync
rm -rf e && mkdir e && storage restore e --prefix d 2>e.log && start_sync d e --delete-removed --interval 600
sleep 3
rm -r e/checkpoint-2 && end_sync && [[ $(restored d) == "by-hand " ]]
verdict $? "what is removed before the second look at the folder goes, too" "$(cat e.log; storage list d)"

# ---- faults
proxy_rules '[{"path":"f/","fault":"status","status":503,"every":3,"times":12},{"method":"PUT","path":"f/","fault":"lose-answer","every":4,"times":3}]'
rm -rf f && mkdir f && checkpoint f 1 && start_sync f f && checkpoint f 2 && sleep 1 && end_sync && proxy_rules '[]' && [[ $(restored f) == "$(whole 1)$(whole 2)" ]] && diff -r f back
verdict $? "SlowDown and lost answers change nothing" "$(cat f.log; storage list f)"
s3_kill
rm -rf g && mkdir g && checkpoint g 1
through_proxy sync g --prefix g --patience 1 2>g.log
[[ $? == 1 ]]
verdict $? "without a server it ends with an error, so that its container is started again" "$(cat g.log)"

# ---- a job of a foreign program: a checkpoint each second, and an end by SIGKILL in the first life, after checkpoint 3
s3_start
mkdir scripts
cat >scripts/train.sh <<'SCRIPT'
begin=$(ls -d "$COXSWAIN_CHECKPOINT_DIR"/checkpoint-* 2>/dev/null | sed 's/.*-//' | sort -n | tail -n 1)
echo "attempt $COXSWAIN_ATTEMPT begins after ${begin:-0}"
for ((step = ${begin:-0} + 1; step <= 5; step++)); do
    folder=$COXSWAIN_CHECKPOINT_DIR/checkpoint-$step
    mkdir -p "$folder" && echo "$step" >"$folder/model" && touch "$folder/training_args.bin" && sleep 0.1 && echo "$step" >"$folder/trainer_state.json"
    if ((step == 4 && COXSWAIN_ATTEMPT == 1)); then
        mkdir "$COXSWAIN_CHECKPOINT_DIR/checkpoint-90" && touch "$COXSWAIN_CHECKPOINT_DIR/checkpoint-90/training_args.bin"
        kill -KILL $$
    fi
done
SCRIPT
plane_start --volume scripts="$work/scripts"
operator_start
api POST api/v1/namespaces/default/secrets '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"runs"},"stringData":{"AWS_ACCESS_KEY_ID":"first-key",
    "AWS_SECRET_ACCESS_KEY":"first-secret-of-the-test"}}' >secret.json
api POST "$jobs_path?fieldValidation=Strict" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"foreign\"},
    \"spec\":{\"image\":\"none\",\"pytorch\":{\"checkpoint\":{\"storage\":\"runs\"}},\"runPolicy\":{\"backoffLimit\":3,\"cleanPodPolicy\":\"None\"},
    \"storage\":[{\"name\":\"scripts\",\"readOnly\":true,\"persistentVolumeClaim\":{\"claimName\":\"scripts\"}},
        {\"name\":\"runs\",\"s3\":{\"endpoint\":\"$s3_endpoint\",\"bucket\":\"runs\",\"prefix\":\"jobs\",\"secretRef\":{\"name\":\"runs\"},\"sync\":{\"everySeconds\":1}}}],
    \"workers\":{\"replicas\":1,\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"command\":[\"bash\",\"/coxswain/storage/scripts/train.sh\"]}]}}}}}" >answer.json
wait_for foreign state Succeeded 60 && [[ $(restored jobs) == "$(for i in 1 2 3 4 5; do printf 'foreign/checkpoint-%s/%s ' $i model $i trainer_state.json $i training_args.bin; done)" ]]
verdict $? "a job saves to the bucket through a folder, starts over and succeeds when all is uploaded" "$(cat answer.json; api GET "$jobs_path/foreign" | tail -c 1500; storage list jobs)"
log_of "$(member foreign 0)" | contains 'attempt 2 begins after 4'
verdict $? "its second life begins with the last whole checkpoint" "$(log_of "$(member foreign 0)")"
