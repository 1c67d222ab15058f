# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $bin is of scene.sh
#
# An API server that answers badly: tests/faultproxy in front of the embedded control plane, for scripts that source this file
# after scene.sh.

proxy=

# faulty_start SEED CUT ERROR: before the plane that plane_start has started; its kubeconfig is `faulty` once this returns.
# The share CUT of all requests gets only the beginning of an answer, and the share ERROR each of 429, 500 and 503; others are
# late, malformed or lost; watches are cut, repeated and expire. The same SEED makes the same choices.
faulty_start() {
    faulty_rules "$2" "$3" >rules.json
    faulty_serve "$1"
}

# faulty_serve SEED: the same by the rules in rules.json
faulty_serve() {
    "$bin/tests/faultproxy" --kubeconfig state/kubeconfig --rules rules.json --seed "$1" --out faulty 2>proxy.log &
    proxy=$!
    until_true 20 test -s faulty
}

# faulty_rules CUT ERROR: those rules
faulty_rules() {
    cat <<JSON
[{"watch": true, "fault": "cut", "afterBytes": 2500, "probability": 0.25},
 {"watch": true, "fault": "duplicate", "probability": 0.3},
 {"watch": true, "fault": "expire", "probability": 0.1},
 {"watch": true, "fault": "status", "status": 410, "probability": 0.1},
 {"watch": false, "method": "GET", "fault": "malformed", "probability": 0.05},
 {"watch": false, "fault": "cut", "afterBytes": 20, "probability": $1},
 {"watch": false, "fault": "cut", "afterBytes": 0, "probability": 0.05},
 {"fault": "status", "status": 429, "retryAfter": 1, "probability": $2},
 {"fault": "status", "status": 500, "probability": $2},
 {"fault": "status", "status": 503, "probability": $2},
 {"fault": "delay", "delayMs": 200, "probability": 0.15}]
JSON
}

faulty_stop() {
    [[ -z $proxy ]] || kill "$proxy" 2>/dev/null
}
