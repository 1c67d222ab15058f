# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # $bin and $work are the caller's, and $cox_command and $folder for it
#
# What the tests of `cox run` on this machine share: a home directory of their own, and a run that goes on. To be sourced after
# scene.sh and cox.sh. Sets `folder`, where the runs' state directories are.
cox_command=("$bin/cox")
runner=

finish_also() {
    if [[ -n $runner ]]; then kill "$runner" 2>/dev/null; fi
}

export HOME=$work
unset XDG_STATE_HOME KUBECONFIG
folder=$work/.local/state/coxswain

# long_start MANIFEST [WORD…]: runs it as the job "long", which has made a step once this returns. It prints to long.log
long_start() {
    "$bin/cox" run "$@" --set metadata.name=long --set spec.coxswain.training.steps=1000000 >long.log 2>&1 &
    runner=$!
    until_true 60 grep -q '^step [1-9]' long.log && until_true 60 grep -qs '"step": [1-9]' "$folder/default-long/run.json"
}

# long_kill: its cox, which cannot end it then
long_kill() {
    kill -KILL "$runner"
    wait "$runner" 2>/dev/null
    runner=
}
