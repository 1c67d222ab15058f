#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/e2e/kind where there is no docker and no registry to pull kind's node image from: the script itself, word for word,
# with this cluster in place of kind's; docker and kind are stand-ins that look at what they are asked for. The cluster that the
# script describes is then given to kind itself, of the version that the workflow takes, with a docker that starts nothing:
# what is not shown is what happens in kind's nodes. Run by tests/e2e/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# shellcheck source=tests/e2e/scene.sh
. "$root/tests/e2e/scene.sh"

mkdir "$work/bin"
cat >"$work/bin/docker" <<'STAND_IN'
#!/usr/bin/env bash
# docker build --target STAGE -t NAME .
set -euo pipefail
[[ $# == 6 && $1 == build && $2 == --target && $4 == -t && -f $6/Dockerfile ]]
grep -q "^FROM .* AS $3\$" "$6/Dockerfile"
echo "$5" >>"$STAND_IN/built"
STAND_IN
cat >"$work/bin/kind" <<'STAND_IN'
#!/usr/bin/env bash
# kind create cluster --name N --config -, kind load docker-image --name N IMAGE, kind delete cluster --name N
set -euo pipefail
case "$1 $2" in
"create cluster")
    [[ $# == 6 && $5 == --config ]]
    [[ $(tee "$STAND_IN/kind.yaml" | grep -c '^- role: ') == 3 ]]
    cp "$REAL_KUBECONFIG" "$KUBECONFIG"
    ;;
"load docker-image")
    grep -qx "$5" "$STAND_IN/built"
    for node in "$CLUSTER"/nodes/*; do
        nsenter --target "$(<"$node/init")" --mount --net --pid -- ctr --address /run/containerd/containerd.sock --namespace k8s.io \
            images tag --force "localhost/$5" "docker.io/library/$5" >/dev/null
    done
    ;;
"delete cluster") touch "$STAND_IN/deleted" ;;
*) exit 2 ;;
esac
STAND_IN
chmod +x "$work/bin/"*

STAND_IN=$work REAL_KUBECONFIG=$KUBECONFIG PATH=$work/bin:$PATH "$root/tests/e2e/kind" trial >kind.log 2>&1
verdict $? "the script for kind ends well" "$(tail -n 5 kind.log | tr '\n' ' ')"
[[ $(tail -n 1 kind.log) == "ok kind" ]]
verdict $? "with all its steps" "$(tail -n 5 kind.log | tr '\n' ' ')"
grep -q "^skip kind's GPU nodes: there is no nvidia-smi$" kind.log || command -v nvidia-smi >/dev/null
verdict $? "and says which it has left out" "$(grep '^skip' kind.log)"
[[ -e deleted ]]
verdict $? "and takes its cluster away"
mkdir "$work/few"
for program in bash env dirname; do ln -s "$(command -v $program)" "$work/few/"; done
! CI=true PATH=$work/few "$root/tests/e2e/kind" none >absent.log 2>&1 && grep -qx 'not ok kind: there is no docker' absent.log &&
    CI='' PATH=$work/few "$root/tests/e2e/kind" none >absent.log 2>&1 && grep -qx 'skip kind: there is no docker' absent.log
verdict $? "without its programs it fails where CI=true, and is skipped elsewhere" "$(cat absent.log)"
# The output behind that line does not matter, because there is no cluster for it.
STAND_IN=$work GPUS=0 REAL_KUBECONFIG=/nowhere PATH=$work/bin:$PATH "$root/tests/e2e/kind" none >declined.log 2>&1 || true
head -n 1 declined.log | grep -q "^skip kind's GPU nodes: GPUS=0$"
verdict $? "GPU nodes may be declined" "$(head -n 5 declined.log | tr '\n' ' ')"
if ! command -v nvidia-smi >/dev/null; then
    ! GPUS=1 PATH=$work/bin:$PATH "$root/tests/e2e/kind" none >gpus.log 2>&1 && grep -q '^not ok kind: GPUS=1, but there is no nvidia-smi$' gpus.log
    verdict $? "or demanded" "$(cat gpus.log)"
fi
kubectl delete namespace train coxswain-system --timeout=240s >/dev/null

# ---------------------------------------------------------------- kind itself
real=${TMPDIR:-/tmp}/kind # built by tests/e2e/check: there is no network in here
if [[ ! -x $real/kind ]]; then
    echo "skip kind itself: it could not be built"
    exit 0
fi
cat >"$real/docker" <<'STAND_IN'
#!/usr/bin/env bash
echo "$*" >>"$STAND_IN/asked"
case $1 in
info) echo '{"MemoryLimit": true, "PidsLimit": true, "CPUShares": true, "CgroupVersion": "2"}' ;;
run) # kind asks for all nodes at once, and for none after the first that fails
    for ((i = 0; i < 300; i++)); do
        (($(grep -c '^run --name trial-' "$STAND_IN/asked") < 3)) || break
        sleep 0.2
    done
    echo "starts nothing" >&2
    exit 125
    ;;
esac
STAND_IN
chmod +x "$real/docker"
STAND_IN=$work PATH=$real:$PATH timeout 120 kind create cluster --name trial --config - <kind.yaml >kind.log 2>&1
[[ $(grep -c '^run --name trial-' asked) == 3 ]] && grep -q 'starts nothing' kind.log
verdict $? "kind itself takes the cluster's description: three nodes" "$(tail -n 3 kind.log | tr '\n' ' ')"
