# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $server is the caller's
#
# Keys and certificates of a test cluster, in $CLUSTER/pki, and kubeconfigs with them.

key() {
    openssl ecparam -name prime256v1 -genkey -noout -out "$CLUSTER/pki/$1.key" 2>/dev/null
}

# certificate NAME SUBJECT [EXTENSION]: signed by the cluster's authority
certificate() {
    local pki=$CLUSTER/pki
    key "$1"
    openssl req -new -key "$pki/$1.key" -subj "$2" |
        openssl x509 -req -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 2 -out "$pki/$1.crt" \
            -extfile <(printf 'extendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:-}") 2>/dev/null
}

# identity NAME SUBJECT: a certificate, and a kubeconfig with it
identity() {
    certificate "$1" "$2"
    cat >"$CLUSTER/$1.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {server: "$server", certificate-authority: $CLUSTER/pki/ca.crt}
users:
- name: $1
  user: {client-certificate: $CLUSTER/pki/$1.crt, client-key: $CLUSTER/pki/$1.key}
contexts:
- name: test
  context: {cluster: test, user: $1}
current-context: test
YAML
}
