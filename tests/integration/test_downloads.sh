#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs of the embedded control plane whose data and first weights are downloaded (storage[].download): once for all pods and jobs of a volume,
# through cuts and kills, and the messages of those that fail. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/integration/scene.sh
. "$root/tests/integration/scene.sh"
# shellcheck source=tests/integration/digits.sh
. "$root/tests/integration/digits.sh"
if ! command -v openssl >/dev/null; then
    echo "skip downloads: openssl makes the server's certificate, and is not here"
    exit 0
fi

mkdir -p served/d served/models/org/tiny served/models/gated/tiny runs cache
make_digits
cp images labels served/d
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=hub -addext subjectAltName=IP:127.0.0.1 -days 2 -keyout key.pem -out hub.pem 2>/dev/null
"$root/tests/integration/hub.py" port served hub.pem key.pem hub.log &
hub_process=$!
finish_also() {
    kill "$hub_process"
}
until_true 10 test -s port
hub=127.0.0.1:$(<port)

# ---- the program by itself
download() {
    timeout 60 "$bin/coxswain-storage" download --credentials secrets --hub "https://$hub" "$@"
}
asked() {
    grep -c -- "$1" hub.log
}
mkdir secrets folder
cp hub.pem secrets/ca.crt
head -c 300000 /dev/urandom >served/models/org/tiny/model.safetensors
echo '{"a": 1}' >served/models/org/tiny/config.json
cp served/models/org/tiny/* served/models/gated/tiny
model=served/models/org/tiny/model.safetensors
touch served/cut
download folder hf://org/tiny >said 2>&1 && cmp folder/org/tiny/model.safetensors $model &&
    cmp folder/org/tiny/config.json served/models/org/tiny/config.json && (($(asked 'model.safetensors bytes=[1-9]') >= 2))
verdict $? "a download that is cut goes on where it ended, after a redirect" "$(cat said hub.log)"
rm -r served/cut folder/org
touch served/slow
"$bin/coxswain-storage" download --credentials secrets --hub "https://$hub" folder hf://org/tiny >said 2>&1 &
victim=$!
partial=folder/org/tiny/.partial-model.safetensors
arrived() {
    (($(stat -c %s $partial 2>/dev/null || echo 0) > 50000))
}
until_true 20 arrived
caught=$(awk '$1 == "SigCgt:" { print $2 }' "/proc/$victim/status")
((0x$caught & 1 << 14))
verdict $? "SIGTERM has a handler, without which the first process of a container would ignore it" "$caught"
kill -KILL "$victim"
wait "$victim" 2>/dev/null
rm served/slow
before=$(stat -c %s $partial)
[[ ! -e folder/org/tiny/model.safetensors ]] && download folder hf://org/tiny >said 2>&1 && cmp folder/org/tiny/model.safetensors $model && grep -q "bytes=$before" hub.log
verdict $? "a killed download is not seen, and goes on where it ended" "$before; $(cat said hub.log)"
: >hub.log
crew=()
for i in 1 2 3; do
    download folder hf://org/tiny@0123456789abcdef0123456789abcdef01234567 >"said.$i" 2>&1 &
    crew+=($!)
done
wait "${crew[@]}"
[[ $(asked '/models/org/tiny/model.safetensors') == 1 && $(cat said.? | grep -c 'already_there=2') == 2 ]]
verdict $? "of three at a time one downloads" "$(cat said.? hub.log)"
fails() {
    local words=$1
    shift
    ! download "$@" >said 2>&1 && grep -q "$words" said
    verdict $? "a sentence says: $words" "$(cat said)"
}
fails 'there is nothing at .*correct the name or the revision' folder hf://org/tiny@v9
fails 'put a token that may read it into the Secret' folder hf://gated/tiny
echo hf_secret >secrets/token
download folder hf://gated/tiny >said 2>&1 && cmp folder/gated/tiny/model.safetensors $model
verdict $? "with its token a gated model is downloaded" "$(cat said)"
rm secrets/token
fails 'raise sizeLimit' --ceiling 1000 folder hf://org/tiny@main
fails 'instead of 0000' folder "https://$hub/d/images#sha256=$(printf '%064d' 0)"

# ---- jobs
plane_start --volume cache="$work/cache" --volume runs="$work/runs"
operator_start
api POST api/v1/namespaces/default/secrets "$(python3 -c 'import json; print(json.dumps({"apiVersion": "v1", "kind": "Secret",
    "metadata": {"name": "hub"}, "stringData": {"ca.crt": open("hub.pem").read()}}))')" >secret.json
digest() {
    sha256sum "served/$1" | cut -d ' ' -f 1
}
# job_of NAME INIT [SOURCE]: trains on the digits
job_of() {
    api POST "$jobs_path?fieldValidation=Strict" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"workers\":{\"replicas\":2},\"storage\":[{\"name\":\"cache\",\"readOnly\":true,\"persistentVolumeClaim\":{\"claimName\":\"cache\"},
            \"download\":{\"hub\":\"https://$hub\",\"secretRef\":{\"name\":\"hub\"},\"sources\":[{\"url\":\"https://$hub/d/images\",\"sha256\":\"$(digest d/images)\"},
            {\"url\":\"https://$hub/d/labels\",\"sha256\":\"$(digest d/labels)\"}${3:-}]}},
            {\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}}],
        \"coxswain\":{\"strategy\":{\"type\":\"MultiWorkerMirrored\"},\"model\":{\"preset\":\"mlp\"},
            \"data\":{\"format\":\"IDX\",\"storage\":\"cache\",\"path\":\"$hub/d\",\"train\":{\"images\":\"images\",\"labels\":\"labels\"}},
            \"training\":{\"epochs\":1,\"batchSize\":100,\"seed\":1,\"optimizer\":{\"type\":\"SGD\",\"learningRate\":0.1}},
            \"export\":{\"storage\":\"runs\",\"path\":\"$1.safetensors\"}$2}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}
: >hub.log
touch served/slow
job_of first ''
why_says() {
    KUBECONFIG=$work/state/kubeconfig "$bin/cox" why first 2>&1 | tee why | contains 'downloads files'
}
until_true 20 why_says
verdict $? "cox why says that a pod downloads" "$(cat why; ls)"
rm served/slow
wait_for first state Succeeded 40 && [[ -s runs/first.safetensors && $(asked /d/images) == 1 && $(asked /d/labels) == 1 ]]
verdict $? "a job trains on downloaded files, and its two pods download them once" "$(api GET "$jobs_path/first" | tail -c 2000; cat hub.log)"
mkdir -p served/models/org/first
cp runs/first.safetensors served/models/org/first/model.safetensors
job_of second ',"init":{"storage":"cache","path":"org/first/model.safetensors"}' ',{"url":"hf://org/first/*.safetensors"}'
wait_for second state Succeeded 40 && [[ $(asked /d/images) == 1 && $(asked '/models/org/first/model.safetensors') == 1 ]] &&
    ! cmp -s runs/first.safetensors runs/second.safetensors
verdict $? "a second job of the claim takes them as they are, and begins with the weights of the hub" "$(api GET "$jobs_path/second" | tail -c 2000; cat hub.log)"
job_of missing '' ',{"url":"hf://org/none"}'
wait_for missing state Failed 40 && job_says missing 'there is nothing at'
verdict $? "a model that is not there fails the job with a sentence" "$(api GET "$jobs_path/missing" | tail -c 1500)"
