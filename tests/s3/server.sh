# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # $bin and $work are the caller's, $proxy_endpoint is for it
#
# A real S3 server on a loopback port, and a proxy in front of it that injects faults, for scripts that source this file after `work` (a
# folder of their own) and `bin` (the build) are set. If the server cannot be built here, the script says so and ends.
#
# After s3_start: $s3_endpoint, the bucket $s3_bucket, credentials in the environment and as files in $work/credentials.
# After proxy_start: $proxy_endpoint; proxy_rules JSON sets its rules; its log is $work/proxy.log.

s3_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
s3_server='' s3_proxy=''
s3_bucket=runs

s3_program=$("$s3_here/../cluster/get-tools" minio)/minio || {
    status=$?
    if ((status == 3)); then echo "skip $(basename "$0" .sh): no S3 server can be had here"; else echo "not ok an S3 server: it does not build"; fi
    exit 0
}

# credentials KEY SECRET: replaces both files at once, as a kubelet does
credentials() {
    local folder
    folder=$(mktemp -d "$work/credentials.XXXXXX")
    printf '%s\n' "$1" >"$folder/AWS_ACCESS_KEY_ID"
    printf '%s\n' "$2" >"$folder/AWS_SECRET_ACCESS_KEY"
    ln -sfn "$folder" "$work/.credentials" && mv -T "$work/.credentials" "$work/credentials"
}

s3_answers() {
    curl -sfk "$s3_endpoint/minio/health/live" >/dev/null
}

# A server that has just started may answer its first requests with 503.
s3_make_bucket() {
    curl -sf --user "$s3_curl_as" --aws-sigv4 aws:amz:us-east-1:s3 -X PUT "$s3_endpoint/$s3_bucket"
}

# s3_start [KEY SECRET]: starts the server; a later call may give other credentials for the same data. If $s3_certificates is set, it speaks TLS
# with the public.crt and private.key of that folder
s3_start() {
    local key=${1:-first-key} secret=${2:-first-secret-of-the-test}
    : "${s3_port:=$((RANDOM % 20000 + 20000))}"
    s3_endpoint=http${s3_certificates:+s}://127.0.0.1:$s3_port
    mkdir -p "$work/objects"
    MINIO_ROOT_USER=$key MINIO_ROOT_PASSWORD=$secret MINIO_BROWSER=off MINIO_UPDATE=off HOME=$work \
        setpriv --pdeathsig KILL "$s3_program" server --quiet ${s3_certificates:+--certs-dir "$s3_certificates"} \
        --address "127.0.0.1:$s3_port" "$work/objects" >>"$work/server.log" 2>&1 &
    s3_server=$!
    until_true 30 s3_answers || cat "$work/server.log"
    s3_curl_as="$key:$secret"
    [[ ${s3_made:-} ]] || {
        until_true 10 s3_make_bucket && s3_made=1
        credentials "$key" "$secret"
    }
}

s3_kill() {
    kill -KILL "$s3_server" && wait "$s3_server" 2>/dev/null
}

proxy_rules() {
    printf '%s\n' "$1" >"$work/.rules" && mv "$work/.rules" "$work/rules.json"
}

proxy_start() {
    proxy_rules '[]'
    : >"$work/proxy.log"
    python3 "$s3_here/proxy.py" "127.0.0.1:$s3_port" "$work/rules.json" "$work/proxy.log" >"$work/proxy.port" 2>"$work/proxy.errors" &
    s3_proxy=$!
    until_true 10 test -s "$work/proxy.port"
    proxy_endpoint=http://127.0.0.1:$(<"$work/proxy.port")
}

s3_end() {
    # shellcheck disable=SC2086 # either may be unset
    kill $s3_server $s3_proxy 2>/dev/null
}

# storage WORD…: coxswain-storage at $endpoint with the credentials in files
storage() {
    "$bin/coxswain-storage" --endpoint "${endpoint:-$s3_endpoint}" --bucket "${bucket:-$s3_bucket}" --credentials "$work/credentials" "$@"
}
