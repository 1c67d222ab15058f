#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the embedded control plane gives its pods, in either isolation: a temporary folder of their own, the notice that their
# command was killed, and an end of all their processes when the control plane itself is killed.
# Prints ok lines (see tests/run); ends with 1 at what fails.
set -eu
build=${BUILD:?the build directory}
root=$(cd "$(dirname "$0")/../.." && pwd)
state=$(mktemp -d)
export TMPDIR="$state" # what a killed control plane leaves behind is removed with it
server=
trap 'if [ -n "$server" ]; then kill -9 "$server" 2>/dev/null || :; fi; rm -rf "$state"' EXIT

request() { # method path [body]
    curl --silent --show-error --fail --max-time 10 --cacert "$state/ca.pem" --header "Authorization: Bearer $token" \
        --header 'Content-Type: application/json' --request "$1" ${3:+--data "$3"} "$url$2"
}

create_pod() { # name, the shell command that it runs
    request POST /api/v1/namespaces/default/pods @- >/dev/null <<JSON
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1"}, "spec": {"restartPolicy": "Never", "containers": [
    {"name": "trainer", "image": "none", "command": ["sh", "-c", "$2"]}]}}
JSON
}

wait_for() { # a command that shall succeed
    for _ in $(seq 1200); do
        if "$@"; then return 0; fi
        sleep 0.05
    done
    echo "never became true: $*" >&2
    return 1
}

is_running() { request GET /api/v1/namespaces/default/pods/probe | grep -q '"phase":"Running"'; }
is_killed() { request GET /api/v1/namespaces/default/pods/probe | grep -q '"exitCode":137'; }
is_gone() { ! pgrep -f "sleep $mark" >/dev/null; }

start() { # isolation
    COXSWAIN_PJRT_PLUGIN=/plugin.so COXSWAIN_OTHER=other "$build/coxswain-standalone" --state "$state/s" --crd "$root/deploy/crd" --isolation "$1" >"$state/log" 2>&1 &
    server=$!
    wait_for test -f "$state/s/kubeconfig"
    url=$(sed -n 's/.*server: *"\{0,1\}\([^"]*\)"\{0,1\}/\1/p' "$state/s/kubeconfig")
    token=$(sed -n 's/.*token: *"\{0,1\}\([^"}]*\)"\{0,1\}.*/\1/p' "$state/s/kubeconfig")
    sed -n 's/.*certificate-authority-data: *"\{0,1\}\([^"]*\)"\{0,1\}/\1/p' "$state/s/kubeconfig" | base64 -d >"$state/ca.pem"
}

for isolation in auto rewrite; do
    rm -rf "$state/s"
    start "$isolation"
    # Two pods write the same name into their temporary folders, and see each their own.
    for name in one two; do
        create_pod "$name" "echo $name >>\$TMPDIR/file; cat \$TMPDIR/file >$state/$name; echo \$COXSWAIN_PJRT_PLUGIN\$COXSWAIN_OTHER >$state/$name.plugin; echo \$TMPDIR >$state/$name.path; sleep 100"
    done
    wait_for test -s "$state/one.path" -a -s "$state/two.path"
    test "$(cat "$state/one") $(cat "$state/two")" = "one two"
    test -d "$(cat "$state/one.path")"
    echo "ok each pod has a temporary folder of its own ($isolation)"
    test "$(cat "$state/one.plugin")" = /plugin.so
    echo "ok and from the machine's environment the plugin that runs programs, but no other variable of ours ($isolation)"
    for name in one two; do request DELETE "/api/v1/namespaces/default/pods/$name?gracePeriodSeconds=0" >/dev/null; done
    wait_for test ! -e "$(cat "$state/one.path")" -a ! -e "$(cat "$state/two.path")"
    echo "ok the folder is removed with the pod ($isolation)"
    rm -f "$state"/one* "$state"/two*
    mark=$((100000 + $$))
    create_pod probe "setsid sleep $mark & exec sleep $mark"
    wait_for is_running
    process=$(request GET /api/v1/namespaces/default/pods/probe | sed 's/.*process:\/\/\([0-9]*\).*/\1/')
    kill -9 "$process"
    wait_for is_killed
    wait_for is_gone
    echo "ok a kill of the command is seen at once and leaves no orphan ($isolation)"
    request DELETE /api/v1/namespaces/default/pods/probe >/dev/null
    create_pod probe "setsid sleep $mark & exec sleep $mark"
    wait_for is_running
    kill -9 "$server"
    wait "$server" 2>/dev/null || :
    server=
    wait_for is_gone
    echo "ok SIGKILL of the control plane leaves no orphan ($isolation)"
done
