#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every command of cox against the embedded control plane: what it prints, and its exit code. Prints ok/not ok lines (see
# tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
follower=

finish_also() {
    if [[ -n $follower ]]; then kill "$follower" 2>/dev/null; fi
}

plane_start
operator_start
export KUBECONFIG=$work/state/kubeconfig HOME=$work
cox_command=(timeout 240 "$bin/cox")
. "$root/tests/integration/cox.sh"

cox 0 get && grep -q 'no training jobs in namespace default' err
verdict $? "get says when there is nothing" "$(said)"
cox 0 why --help && printed '^usage: cox why NAME' 'Exit code: 0' '--kubeconfig FILE'
verdict $? "--help is the manual" "$(said)"
cox 2 fred && cox 2 && cox 2 get --fred && cox 2 wait && cox 2 scale none && cox 2 wait x --for Fred
verdict $? "wrong usage is exit code 2" "$(said)"
cox 2 wait x --timeout abc && grep -q 'it takes a time such as 90' err && cox 2 run job.yaml --volume /data &&
    grep -q 'such as --volume digits=/data' err && cox 2 run && grep -q 'it takes one FILE' err
verdict $? "what is wrong with it is told" "$(said)"
cox 0 --version && printed '^cox [0-9]' && "$bin/coxswain-operator" --version | contains '^coxswain-operator [0-9]' &&
    "$bin/coxswain-standalone" --version | contains '^coxswain-standalone [0-9]' &&
    [[ $(metric 'coxswain_build_info{version="[0-9.]*"}') == 1 ]]
verdict $? "every program says its version" "$(said)"
cox 2 get Digits && grep -q 'no job can be called "Digits"' err && cox 2 wait digits_2 && cox 2 get -n Team && cox 2 logs x --role master &&
    grep -q 'there are chief, worker, ps and evaluator' err && KUBECONFIG=missing cox 2 describe "$(printf 'x%.0s' {1..41})"
verdict $? "what cannot exist is not asked for" "$(said)"
cox 1 get none && grep -q '"none" not found' err && cox 1 describe none && cox 1 why none && cox 1 logs none &&
    cox 1 suspend none && cox 1 delete none && cox 1 top none && cox 1 wait none
verdict $? "what does not exist is exit code 1" "$(said)"
cox 1 get --kubeconfig missing && cox 1 get --context missing
verdict $? "an unknown cluster is exit code 1" "$(said)"

# shellcheck disable=SC2016 # for the pod's shell
job steady '{"backoffLimit":3}' 2 'echo $COXSWAIN_ROLE $COXSWAIN_INDEX of attempt $COXSWAIN_ATTEMPT; exec sleep 100'
cox 0 wait steady --for Running --timeout 180s
verdict $? "wait ends when the crew runs" "$(said)"
cox 3 wait steady --timeout 1
verdict $? "and with 3 when its time is over" "$(said)"
cox 0 get && printed '^NAME *STATE *READY' '^steady *Running *2/2' && cox 0 get steady -o name &&
    printed '^trainingjob.coxswain.dev/steady$' && cox 0 get -A -o wide && printed '^NAMESPACE' 'MultiWorkerMirrored' &&
    cox 0 get steady -o yaml && printed '^kind: TrainingJob' && cox 0 get -o json && printed '"kind": "List"' &&
    cox 0 get -l team=none && [[ ! -s out ]]
verdict $? "get lists, selects and prints documents" "$(said)"
cox 0 describe steady && printed '^Crew *worker 2' '^State *Running, 2/2 ready' 'CrewComplete' 'steady-worker-1-1 *ready' \
    'a crew of 2 pods is being created' '^steady waits for nothing: it runs'
verdict $? "describe shows all there is" "$(said)"
cox 0 top --once && printed '^steady *Running *2/2' && cox 0 top steady --once && printed 'worker 1  *ready\|steady  Multi'
verdict $? "top shows how things stand" "$(said)"
says_both() {
    cox 0 logs steady && printed '^worker-0 | worker 0 of attempt 1$' '^worker-1 | worker 1 of attempt 1$'
}
until_true 30 says_both && cox 0 logs steady --role worker --index 1 --tail 1 && printed '^worker 1 of attempt 1$'
verdict $? "logs are merged, or one pod's" "$(said)"
cox 1 logs steady --role ps && grep -q 'steady has no role ps' err && cox 1 logs steady --index 2 && grep -q 'no role of steady has an index 2' err
verdict $? "logs of a place that there is not" "$(said)"

"$bin/cox" logs steady -f >followed 2>&1 &
follower=$!
until_true 30 grep -q '^worker-1 | worker 1 of attempt 1$' followed
verdict $? "logs -f begins with what there is" "$(cat followed)"
cox 0 restart steady --index 1 && wait_for steady incarnation 2 60 && [[ $(field steady attempt) == 1 ]]
verdict $? "restart replaces one pod" "$(said)"
cox 0 wait steady --for Running --timeout 180s && cox 0 restart steady && wait_for steady attempt 2 60
verdict $? "or the whole crew" "$(said)"
until_true 60 grep -q '^worker-0 | worker 0 of attempt 2$' followed
verdict $? "logs -f goes on with those that come later" "$(cat followed)"

cox 0 suspend steady && cox 0 wait steady --for Suspended --timeout 180s && cox 0 get && printed '^steady *Suspended'
verdict $? "suspend removes the pods" "$(said)"
cox 0 why steady && printed '^steady waits for a user to resume it'
verdict $? "why says that a user must resume it" "$(said)"
cox 1 restart steady && grep -q 'steady is suspended: .cox resume steady. starts' err && cox 0 why steady && printed 'a user to resume it'
verdict $? "a restart does not resume a suspended job" "$(said)"
cox 0 resume steady && cox 0 wait steady --for Running --timeout 180s
verdict $? "resume brings them back" "$(said)"
stale() {
    kill -STOP "$operator" && cox 0 suspend steady && cox 3 wait steady --for Running --timeout 1s &&
        cox 0 resume steady
}
stale
went_stale=$?
kill -CONT "$operator"
((went_stale == 0)) && cox 0 wait steady --for Running --timeout 180s
verdict $? "what was true before a change is not waited for" "$(said)"
cox 1 scale steady --workers 3 && grep -q 'may change only with minReplicas and maxReplicas' err
verdict $? "scale quotes the API server's refusal" "$(said)"
cox 0 delete steady --timeout 180s && cox 1 get steady && cox 0 wait steady --for Deleted
verdict $? "delete waits until it is gone" "$(said)"
until_true 60 have_ended "$follower"
verdict $? "logs -f ends with the job" "$(cat followed)"

job short '{}' 1 'echo done'
cox 0 wait short --timeout 180s && printed 'short: Succeeded: worker 0 is done'
verdict $? "wait tells how a job succeeded" "$(said)"
job gone '{"cleanPodPolicy":"All"}' 1 'echo done'
cox 0 wait gone --timeout 180s
pods_are_gone() { cox 0 logs gone && grep -q '^worker-0: its pod is gone$' err && [[ ! -s out ]]; }
until_true 60 pods_are_gone && cox 0 logs gone -f && grep -q '^worker-0: its pod is gone$' err
verdict $? "logs that are gone are told" "$(said)"
cat >foreign.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: foreign}
spec:
  image: any
  workers: {replicas: 1, template: {spec: {containers: [{name: pytorch, command: [/bin/sh, -c, echo step one is taken]}]}}}
  pytorch: {}
YAML
cox 0 run foreign.yaml --kubeconfig "$work/state/kubeconfig" && printed 'chief: step one is taken'
verdict $? "a foreign job's log is shown, whatever its container is called" "$(said)"
job bad '{}' 1 'echo no such data; exit 65'
cox 1 wait bad --timeout 180s && printed 'bad: Failed: .*65' && cox 0 why bad && printed 'it has failed'
verdict $? "and how it failed, with 1" "$(said)"
cox 1 restart bad && grep -q 'bad is over: there is nothing to restart' err && ! job_says bad "\"suspend\": *true"
verdict $? "what is over is not suspended by a restart" "$(said)"
cox 1 restart bad --index 0 && grep -q 'bad is over: there is nothing to restart' err && cox 0 logs bad && printed 'no such data'
verdict $? "and a restart of its pod does not delete the pod that is kept for its log" "$(said)"
api PATCH "$jobs_path/bad" '{"metadata":{"labels":{"a":"b"}}}' >/dev/null
cox 0 get -l a=b -o name && printed '^trainingjob.coxswain.dev/bad$' && (($(wc -l <out) == 1))
verdict $? "a selector selects" "$(said)"

# Like a cloud's kubeconfig: a credential plugin prints the user's token.
cat >log-in <<SH
#!/bin/sh
echo "\$KUBERNETES_EXEC_INFO" >told
echo '{"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": {"token": "'\$1'"}}'
SH
chmod +x log-in
plugin="exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./log-in, args: [$token], provideClusterInfo: true, installHint: buy it}"
sed "s|^\( *\)token: .*|\1$plugin|" state/kubeconfig >cloud
sed 's|/log-in|/missing|' cloud >unknown
cox 0 get --kubeconfig cloud && printed '^bad *Failed' && grep -q '"server":"https://127.0.0.1' told
verdict $? "a kubeconfig's credential plugin is asked" "$(said)"
cox 0 run foreign.yaml --kubeconfig cloud && cox 0 logs foreign -f --kubeconfig cloud && printed 'step one is taken'
verdict $? "for run and logs too" "$(said)"
cox 1 get --kubeconfig unknown && grep -q "user 'coxswain': exec: .*/missing: it cannot be started: .*; buy it" err
verdict $? "one that is not installed is told, with the kubeconfig's hint" "$(said)"
printf '#!/bin/sh\ntouch hangs\nexec sleep 600\n' >hanging && chmod +x hanging && sed 's|/log-in|/hanging|' cloud >hung
"$bin/cox" get --kubeconfig hung >out 2>err </dev/null &
follower=$!
until_true 60 test -e hangs && kill -TERM "$follower" && {
    wait "$follower"
    [[ $? == 130 ]]
}
verdict $? "one that hangs is ended with cox" "$(said)"
follower=
! timeout 60 "$bin/coxswain-operator" --kubeconfig cloud >out 2>err && grep -q "'exec' is not supported here" out err
verdict $? "the operator runs none" "$(said)"

example=$root/deploy/examples/gpt2.yaml
cox 1 run "$example" --set spec.coxswain.trainin.steps=3 && grep -q 'there is no field trainin; did you mean training? The fields are .*training' err && [[ ! -e $HOME/.local/state/coxswain ]]
verdict $? "run --set names what could stand in a path" "$(said)"
cox 2 run "$example" --set && cox 1 run "$example" --set spec.coxswain.training.steps && grep -q 'is not PATH=VALUE' err
verdict $? "and says how one is written" "$(said)"
cox 0 run "$example" --kubeconfig "$KUBECONFIG" --set metadata.name=shorter --set spec.coxswain.training.steps=3 --set spec.coxswain.model.depth=1 \
    --set spec.coxswain.training.optimizer.learningRate=0.5 --set 'spec.coxswain.data={format: Synthetic, examples: 64, validation: {last: 16}}' \
    --set spec.coxswain.evaluation=null && printed '^shorter is done' && cox 0 get shorter -o wide && printed '3/3' &&
    cox 0 get shorter -o json && printed '"learningRate": "0.5"' '"examples": 64' && ! printed '"everySteps": 50'
verdict $? "run --set changes the job and nothing else" "$(said)"
cox 1 run "$example" --kubeconfig "$KUBECONFIG" --set metadata.name=never --set spec.coxswain.training.steps=many && grep -q 'spec.coxswain.training.steps' err
verdict $? "what a value may be the API server says" "$(said)"

# The combinations are those of first_job's unit test: 39 of the 72 pairs of model and format, with every strategy.
words_for() { sed -n "s/^  $1 *//p" out; }
generate_all() {
    local strategy model format file
    mkdir -p generated
    for strategy in $(words_for STRATEGY); do
        for model in $(words_for MODEL); do
            for format in $(words_for FORMAT); do
                file=generated/${strategy,,}-$model-$format.yaml
                "$bin/cox" generate mine --strategy "$strategy" --model "$model" --format "$format" >"$file" 2>/dev/null || rm "$file"
            done
        done
    done
}
# One connection for all of them.
apply_generated() {
    local file
    for file in generated/*.yaml; do
        printf 'next\nurl = "%s/%s?dryRun=All&fieldValidation=Strict"\ndata-binary = "@%s"\noutput = "%s.answer"\n' "$server" "$jobs_path" "$file" "$file"
        printf 'write-out = "%%{http_code} %s\\n"\ncacert = "ca.pem"\nsilent\nheader = "Authorization: Bearer %s"\n' "$file" "$token"
        printf 'header = "Content-Type: application/yaml"\n'
    done >requests
    curl -K requests >codes
}
cox 0 generate --help && generate_all && apply_generated
(($(grep -c '^201 ' codes) == 7 * 43 && $(wc -l <codes) == 7 * 43))
verdict $? "the API server takes every manifest that is generated" "$(grep -v '^201 ' codes | head -n 5)"
cox 2 generate mine --model lenet --format Bytes && grep -q 'spec.coxswain.data.format (--format): Bytes and Tokens are for gpt presets' err &&
    cox 2 generate mine --strategy OneDevice --workers 2 && grep -q 'spec.workers.replicas (--workers): .*take MultiWorkerMirrored' err &&
    cox 2 generate Mine && cox 2 generate && cox 2 generate mine --workers many && cox 2 generate mine --data-claim x &&
    cox 1 generate mine --data "$work/generated" && grep -q 'has a name of training data' err
verdict $? "and others are not, with what to change" "$(said)"
mkdir text && seq 20000 >text/numbers.txt
cox 2 run "$work/generated/X.npy" && grep -qF "X.npy: it takes a manifest that says how to train on data; print one by: cox generate NAME --data $work/generated/ >NAME.yaml" err &&
    cox 2 run digits.yaml --data new/rows.csv && grep -qF 'cox generate NAME --data new/rows.csv >NAME.yaml' err
verdict $? "cox run with data in place of a manifest tells the command that makes one" "$(cat err)"
cox 0 generate numbers --data text --strategy OneDevice && mv out numbers.yaml && grep -q '^#   cox run numbers.yaml --volume data=text$' numbers.yaml &&
    cox 0 run numbers.yaml --volume data="$work/text" --state "$work/numbers" --set spec.coxswain.training.steps=2 --set spec.coxswain.training.batchSize=2 &&
    printed '^numbers is done' && [[ -s numbers/volumes/default/runs/numbers/model.safetensors ]]
verdict $? "from a folder to weights" "$(said)"
mkdir pair && { printf '\0\0\10\3\0\0\0\24\0\0\0\34\0\0\0\34' && head -c $((20 * 28 * 28)) /dev/zero; } >pair/t10k-images-idx3-ubyte &&
    { printf '\0\0\10\1\0\0\0\24' && for _ in {1..10}; do printf '\0\1'; done; } >pair/t10k-labels-idx1-ubyte
cox 0 generate digits --data pair && grep -q '^# The folder has only files to test with\.' out && grep -q 'images: t10k-images-idx3-ubyte' out &&
    grep -q '; these are files to test with, but no others are there$' err && printf 'a,b\n1,x\n2,y\n3,x\n4,y\n' >pair/rows.csv &&
    cox 0 generate rows --data pair/rows.csv && grep -q -- '--volume data=pair$' out && ! grep -q 'only files to test with' out
verdict $? "from a pair of files to test with, which is told, and from a table by its path" "$(said)"
mv text $'two\nlines' && cox 0 generate numbers --data $'two\nlines' --strategy OneDevice && grep -q '^#   cox run numbers.yaml --volume data=FOLDER$' out &&
    ! grep -q '^lines' out
verdict $? "a line break in a folder's name breaks no comment" "$(said)"

PATH=$bin:$PATH kubectl-cox help | contains '^usage: kubectl cox COMMAND'
verdict $? "kubectl's plugin calls itself so"
cox 0 completion bash && bash -n out && cox 0 completion zsh && cox 2 completion fish
verdict $? "the completion script is a script" "$(cat err)"
cox 0 completion bash && completed=$(PATH=$bin:$PATH bash -c '. ./out
    complete_words() { COMP_WORDS=(cox "$@"); COMP_CWORD=$#; _cox; echo "${COMPREPLY[@]}"; }
    complete_words desc; complete_words describe sho; complete_words logs --fol; complete_words get -o y
    complete_words run x --set spec.coxswain.training.grad; complete_words run --se
    complete_words generate x --strategy Pi; complete_words generate x --form; complete_words generate x --format By') &&
    [[ $completed == $'describe\nshort shorter\n--follow\nyaml\nspec.coxswain.training.gradientAccumulation= spec.coxswain.training.gradientClipNorm=\n--set\nPipeline\n--format\nBytes' ]]
verdict $? "it completes commands, jobs, options, words and fields" "$completed"
if command -v zsh >/dev/null; then
    cox 0 completion zsh && completed=$(PATH=$bin:$PATH zsh -f -c 'compdef() { :; }; . ./out
        compadd() { print -- "$@"; }; _describe() { print -l -- ${(P)2} | grep "^descr"; }
        complete_words() { words=(cox "$@"); CURRENT=$((# + 1)); _cox; }
        complete_words desc; complete_words describe sho; complete_words wait --fo | grep -o -e "--for"
        complete_words get -o y; complete_words run --set spec.workers.min | grep -o "spec.workers.minReplicas"
        complete_words generate x --model g | grep -o gpt-bytes') &&
        [[ $completed == $'describe:show all that is known about a job\n-- bad short shorter\n--for\nwide json yaml name\nspec.workers.minReplicas\ngpt-bytes' ]]
    verdict $? "the same in zsh" "$completed"
else
    echo "skip completion in zsh: zsh is not installed"
fi
