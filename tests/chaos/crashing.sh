# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # $bin, $root, $work and $lane are the caller's, who uses the rest
#
# An operator that is killed before or after its nth request of a kind, for scripts that go through all n: each in lanes that go on
# side by side, processes of the script itself with a control plane of their own. tests/faultproxy counts the requests and kills.
lanes=${CRASH_LANES:-2}
patience=120
export CRASH_FROM=${CRASH_FROM:-1} CRASH_TO=${CRASH_TO:-60}
lease=apis/coordination.k8s.io/v1/namespaces/default/leases/coxswain-operator

# lane_begin: the environment of a lane; the control plane is not started yet
lane_begin() {
    cd "$work" || exit 1
    exec 2>lane.log # where the shell tells that the operator was killed
    . "$root/tests/integration/plane.sh"
    proxy=
    trap 'kill $proxy 2>/dev/null; plane_stop' EXIT
}

# crashed REQUESTS POINT AFTERWARDS: starts an operator that dies before (AFTERWARDS false) or after (true) the request with the
# number POINT among REQUESTS, which are fields of a rule of the fault proxy.
crashed() {
    echo "[{\"path\": \"/leases\", \"fault\": \"none\"},
           {$1, \"fault\": \"kill\", \"skip\": $(($2 - 1)), \"times\": 1, \"afterwards\": $3}]" >rules.json
    rm -f faulty victim operator.log
    "$bin/tests/faultproxy" --kubeconfig state/kubeconfig --rules rules.json --victim victim --out faulty 2>proxy.log &
    proxy=$!
    if ! until_true $patience test -s faulty; then
        echo "not ok point $2: the proxy does not start"
        exit
    fi
    api DELETE "$lease" >/dev/null # of the one before
    bash -c 'echo $$ >victim; exec "$@"' start "$bin/coxswain-operator" --kubeconfig faulty --leader-elect \
        --lease-namespace default >>operator.log 2>&1 &
    operator=$!
}

# has_crashed: true once, when that operator is dead
has_crashed() {
    [[ ! -e victim ]] && ! kill -0 "$operator" 2>/dev/null && touch victim
}

# where_crashed: "before" or "after", method and path of the request; nothing where the operator was not killed
where_crashed() {
    sed -n 's/^killed [0-9]* \([a-z]* [A-Z]*\) [a-z]*:\/\/[^/]*/\1 /p' proxy.log
}

# watch_objects PATH: writes to watch.json what a watch of these objects says, until life_end
watch_objects() {
    curl -sSN --cacert ca.pem -H "Authorization: Bearer $token" "$server/$1&watch=true" >watch.json &
    watcher=$!
}

life_end() {
    kill "$operator" "$proxy" "$watcher" 2>/dev/null
    wait "$operator" "$proxy" "$watcher" 2>/dev/null
}

# lane_points AFTERWARDS…: calls the script's `killed POINT AFTERWARDS` for each of this lane's points, until there are no more
lane_points() {
    local point afterwards
    for ((point = CRASH_FROM + lane; point <= CRASH_TO; point += lanes)); do
        for afterwards in "$@"; do
            killed "$point" "$afterwards" || return
        done
    done
}

lanes_end() {
    ((${#children[@]} == 0)) || kill "${children[@]}" 2>/dev/null
    wait
    rm -rf "$work"
}

# lanes_run: starts the script itself as `lane NUMBER DIRECTORY` for each lane, and waits for them
lanes_run() {
    local lane
    work=$(mktemp -d)
    children=()
    trap lanes_end EXIT
    for ((lane = 0; lane < lanes; lane++)); do
        mkdir "$work/$lane"
        "$0" lane "$lane" "$work/$lane" &
        children+=($!)
    done
    wait
}
