#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coxswain-storage without keys: the token of a service account is exchanged for temporary credentials by a real server, MinIO, which trusts
# an issuer of tokens (OpenID Connect) as EKS and Kubernetes are one. Prints ok/not ok lines (see tests/run).
# shellcheck disable=SC2154 # server.sh sets it
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(cd "${BUILD:?}" && pwd)
work=$(mktemp -d)
issuer=''
trap 's3_end; kill $issuer 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/integration/verdict.sh"
. "$root/tests/s3/server.sh"

# ---- an issuer: a key, the two documents that say so, and tokens that it has signed
base64url() {
    openssl base64 -A | tr '+/' '-_' | tr -d '='
}
# sign_token SUBJECT SECONDS [KEY]: one that is valid for so long
sign_token() {
    local now head claims
    now=$(date +%s)
    head=$(printf '{"alg":"RS256","typ":"JWT","kid":"first"}' | base64url)
    claims=$(printf '{"iss":"http://127.0.0.1:%s","aud":"storage","sub":"%s","iat":%d,"exp":%d}' "$port" "$1" "$now" $((now + $2)) | base64url)
    printf '%s.%s.%s' "$head" "$claims" "$(printf '%s.%s' "$head" "$claims" | openssl dgst -sha256 -sign "${3:-key.pem}" | base64url)"
}
openssl genrsa -out key.pem 2048 2>/dev/null
openssl genrsa -out stranger.pem 2048 2>/dev/null
mkdir -p issuer/.well-known
port=$((RANDOM % 20000 + 20000))
(cd issuer && exec python3 -m http.server --bind 127.0.0.1 "$port" >/dev/null 2>&1) &
issuer=$!
modulus=$(openssl rsa -in key.pem -noout -modulus | cut -d= -f2 | python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))' | base64url)
printf '{"keys":[{"kty":"RSA","use":"sig","alg":"RS256","kid":"first","n":"%s","e":"AQAB"}]}' "$modulus" >issuer/keys
printf '{"issuer":"http://127.0.0.1:%s","jwks_uri":"http://127.0.0.1:%s/keys","authorization_endpoint":"http://127.0.0.1:%s/","token_endpoint":"http://127.0.0.1:%s/",
    "response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["RS256"]}' \
    "$port" "$port" "$port" "$port" >issuer/.well-known/openid-configuration
until_true 10 curl -sf "http://127.0.0.1:$port/keys" >/dev/null

export MINIO_IDENTITY_OPENID_CONFIG_URL=http://127.0.0.1:$port/.well-known/openid-configuration
export MINIO_IDENTITY_OPENID_CLIENT_ID=storage MINIO_IDENTITY_OPENID_ROLE_POLICY=readwrite
s3_start
proxy_start

# storage WORD…: as in a pod with an identity and without keys
storage() {
    env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY AWS_ROLE_ARN="$role" AWS_WEB_IDENTITY_TOKEN_FILE="$work/token" \
        AWS_ENDPOINT_URL_STS="${sts:-$s3_endpoint}" "$bin/coxswain-storage" --endpoint "$s3_endpoint" --bucket runs "$@"
}
role=arn:minio:iam:::role/$(printf storage | openssl dgst -sha1 -binary | base64url)
head -c 20000000 /dev/urandom >file

sign_token worker 3600 >token
storage put file data/file 2>said && storage get data/file back 2>>said && cmp file back && [[ $(storage list) == "20000000 data/file" ]]
verdict $? "the token of a service account gives access, without a key" "$(cat said)"

sts=$proxy_endpoint
proxy_rules '[{"fault":"status","status":503,"times":3},{"fault":"cut-answer","times":1}]'
storage list >/dev/null 2>said && [[ $(grep -c 'POST /' proxy.log) == 5 ]]
verdict $? "an exchange that fails for a time is tried again" "$(cat said proxy.log)"
sts=''

sign_token worker 3600 stranger.pem >token
! storage list 2>said && [[ $(wc -l <said) == 1 ]] && grep -q "gives no credentials to this pod's service account: HTTP 40" said
verdict $? "a token of another issuer is refused, in one sentence" "$(cat said)"
sign_token worker -60 >token
! storage list 2>said && [[ $(wc -l <said) == 1 ]] && grep -q "gives no credentials to this pod's service account: HTTP 40.*expired" said
verdict $? "an expired token is refused, in one sentence" "$(cat said)"
rm token
! storage list 2>said && [[ $(wc -l <said) == 1 ]] && grep -q 'token that AWS_WEB_IDENTITY_TOKEN_FILE names' said
verdict $? "a missing token is named" "$(cat said)"

# ---- the same server with a certificate of an authority that the system does not know
mkdir certificates ca both
openssl req -x509 -newkey rsa:2048 -nodes -subj '/CN=an authority of our own' -days 2 -keyout ca.key -out ca/ca.crt 2>/dev/null
openssl req -new -newkey rsa:2048 -nodes -subj /CN=minio -keyout certificates/private.key 2>/dev/null |
    openssl x509 -req -CA ca/ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile <(echo subjectAltName=IP:127.0.0.1) \
        -out certificates/public.crt 2>/dev/null
plain=$s3_endpoint
sign_token worker 3600 >token
s3_kill
s3_certificates=$work/certificates
s3_start
! storage list 2>said && [[ $(wc -l <said) == 1 ]] && grep -q "certificate of $s3_endpoint is not trusted.*ca.crt" said
verdict $? "an unknown authority of the server of credentials is named, and what to do" "$(cat said)"
[[ $plain != "$s3_endpoint" && $(storage --credentials "$work/ca" list 2>said) == "20000000 data/file" ]]
verdict $? "with ca.crt and no keys, the token is exchanged and objects are read over TLS" "$(cat said)"
cp ca/ca.crt both
printf 'first-key' >both/AWS_ACCESS_KEY_ID
printf 'wrong' >both/AWS_SECRET_ACCESS_KEY
! storage --credentials "$work/both" list >said 2>&1
verdict $? "keys beside ca.crt go before the identity" "$(cat said)"
