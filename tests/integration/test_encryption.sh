#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Crews with encryption TLS under the operator and the embedded control plane: the bits of a crew in the clear, while
# certificates follow each other every second and workers are killed, so that connections are made under each of
# them. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
steps=400
. "$root/tests/integration/training.sh"

training_start --certificate-period 1

secrets_of() {
    api GET api/v1/namespaces/default/secrets | grep -o "\"name\": *\"$1-tls-[^\"]*\"" | wc -l
}

# has_secrets JOB COUNT
has_secrets() {
    [[ $(secrets_of "$1") == "$2" ]]
}

generation_is_past() {
    (($(field "$1" certificateGeneration) > $2))
}

# is_next JOB POD: worker 1 runs, in another pod than that
is_next() {
    local pod
    pod=$(member "$1" 1)
    [[ $pod != "$2" && -n $(process_of "$pod") ]]
}

# hold_next JOB GENERATION: the next process of worker 1 is frozen, and the crew waits for it, until certificates are past that
hold_next() {
    until_true 60 is_next "$1" "$held" && held=$(member "$1" 1) && strike "$1" 1 STOP &&
        until_true 60 generation_is_past "$1" "$2" && strike "$1" 1 KILL
}

crew plain 2 "$steps"
wait_for plain state Succeeded 120
verdict $? "a crew in the clear, to compare with"
[[ $(secrets_of plain) == 0 ]]
verdict $? "which needs no certificate"

ours='"encryption":{"type":"TLS"},' held=
delay sealed 20 # it is not done before its second worker is lost twice
crew sealed 2 "$steps"
for generation in 1 2; do
    hold_next sealed "$generation"
    verdict $? "a worker is lost, and certificates follow each other ($generation)" "$(field sealed certificateGeneration)"
done
undelay sealed
until_true 60 has_secrets sealed 2 # the one that a new generation replaces goes behind it
verdict $? "two of them are mounted" "$(secrets_of sealed)"
wait_for sealed state Succeeded 240 && same_weights plain sealed
verdict $? "the weights are those of the crew in the clear" "$(log_of "$(member sealed 0)" | tail -n 3)"
log_of "$(member sealed 0)" | grep 'crew .* TLS' >/dev/null
verdict $? "and the crew says that it encrypts"
! log_of "$(member sealed 0)" | grep 'steps were repeated'
verdict $? "no change of certificates cost a step"

strategy='"type":"ParameterServer","mode":"Synchronous"'
more='"parameterServers":{"replicas":2},' held=
delay served 20
crew served 2 "$steps" served
hold_next served 1
undelay served
wait_for served state Succeeded 240 && same_weights plain served
verdict $? "parameter servers speak TLS as well" "$(log_of "$(member served 0)" | tail -n 3)"
