# shellcheck shell=bash disable=SC2154 # $work and $jobs_path are the caller's
# SPDX-License-Identifier: Apache-2.0
#
# What the tests of TrainingSweeps share; to be sourced after scene.sh.
sweeps_path=apis/coxswain.dev/v1beta1/namespaces/default/trainingsweeps

# sweep NAME SPEC [STEPS]: applies a sweep of small jobs whose batches are as slow as the file `delay` says. `examples` and
# `coxswain` change the jobs
sweep() {
    api POST "$sweeps_path?fieldValidation=Strict" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingSweep\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{$2,\"template\":{${policy:-}\"coxswain\":{${coxswain:-}\"strategy\":{\"type\":\"OneDevice\"},\"model\":{\"preset\":\"mlp\",\"width\":16},
        \"data\":{\"format\":\"Synthetic\",\"examples\":${examples:-400},\"validation\":{\"last\":100}},
        \"training\":{\"steps\":${3:-20},\"batchSize\":50,\"optimizer\":{\"type\":\"SGD\",\"learningRate\":0.1}}},
        \"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"env\":[{\"name\":\"COXSWAIN_READ_DELAY\",\"value\":\"$work/delay\"}]}]}}}}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

# told SWEEP EXPRESSION: what Python says of the sweep `s` and its trials `t`, a list in the order of their numbers
told() {
    api GET "$sweeps_path/$1" >sweep.json
    api GET "$jobs_path?labelSelector=coxswain.dev/sweep-name%3D$1" >trials.json
    python3 -c 'import json, sys
s = json.load(open("sweep.json"))
t = sorted(json.load(open("trials.json"))["items"], key=lambda j: int(j["metadata"]["name"].rsplit("-", 1)[1]))
status = s.get("status", {})
def state(j): return next((c["type"] for c in j.get("status", {}).get("conditions", []) if c["status"] == "True"), "Pending")
def metric(j): return float(next(m["value"] for m in j["status"]["progress"]["metrics"] if m["name"] == "validationLoss"))
def reason(type): return next((c["reason"] for c in status.get("conditions", []) if c["type"] == type), "")
def message(type): return next((c["message"] for c in status.get("conditions", []) if c["type"] == type), "")
def rate(j): return j["spec"]["coxswain"]["training"]["optimizer"]["learningRate"]
def batch(j): return j["spec"]["coxswain"]["training"]["batchSize"]
print(eval(sys.argv[1]))' "$2"
}

is_told() {
    [[ $(told "$1" "$2") == True ]]
}

# sweep_is SWEEP STATE [SECONDS]
sweep_is() {
    until_true "${3:-60}" is_told "$1" "state(s) == '$2'"
}
