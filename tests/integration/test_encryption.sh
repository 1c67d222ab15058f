#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Crews with encryption TLS under the operator and the embedded control plane: the bits of a crew in the clear, while
# certificates follow each other every second and workers are killed, so that connections are made under each of
# them. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
steps=2000
. "$root/tests/integration/training.sh"

training_start --certificate-period 1

secrets_of() {
    api GET api/v1/namespaces/default/secrets | grep -o "\"name\": *\"$1-tls-[^\"]*\"" | wc -l
}

generation_is_past() {
    (($(field "$1" certificateGeneration) > $2))
}

crew plain 2 "$steps"
wait_for plain state Succeeded 120
verdict $? "a crew in the clear, to compare with"
[[ $(secrets_of plain) == 0 ]]
verdict $? "which needs no certificate"

more='"encryption":"TLS",'
crew sealed 2 "$steps"
await_step sealed 50
verdict $? "a crew trains under TLS" "$(cat operator.log; log_of "$(member sealed 0)" | tail -n 3)"
log_of "$(member sealed 0)" | grep 'crew .* TLS' >/dev/null
verdict $? "and says so"
[[ $(secrets_of sealed) == 2 ]]
verdict $? "two certificates are mounted" "$(secrets_of sealed)"
for generation in 1 2; do # a frozen worker holds the crew until the next one is there
    await_step sealed $((100 * generation)) && strike sealed 1 STOP &&
        until_true 60 generation_is_past sealed "$generation" && strike sealed 1 KILL
    verdict $? "a worker comes back under another certificate ($generation)" "$(field sealed certificateGeneration)"
done
wait_for sealed state Succeeded 240 && same_weights plain sealed
verdict $? "the weights are those of the crew in the clear" "$(log_of "$(member sealed 0)" | tail -n 3)"
! log_of "$(member sealed 0)" | grep 'steps were repeated'
verdict $? "no change of certificates cost a step"

strategy='"type":"ParameterServer","mode":"Synchronous"'
more='"encryption":"TLS","roles":[{"name":"ps","count":2}],'
crew served 2 "$steps" served
await_step served 20 && strike served 1 STOP && until_true 60 generation_is_past served 1 && strike served 1 KILL
wait_for served state Succeeded 240 && same_weights plain served
verdict $? "parameter servers speak TLS as well" "$(log_of "$(member served 0)" | tail -n 3)"
