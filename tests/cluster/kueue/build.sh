# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # $root is the caller's, $kueue_program and $kueue_module are for it
#
# The program of the real Kueue manager and the folder of its module, for scripts that source this file: $kueue_program, $kueue_module.
# Where they cannot be had, the script says so and ends.

if ! unshare -rm true 2>/dev/null; then
    echo "skip kueue: this machine gives nobody a mount namespace of his own"
    exit 0
fi
kueue_why=$(mktemp)
kueue_program=$(timeout "${KUEUE_SECONDS:-1200}" "$root/tests/cluster/get-tools" kueue 2>"$kueue_why")/kueue
kueue_status=$?
if ((kueue_status == 124)); then
    echo "skip kueue: building its manager took longer than ${KUEUE_SECONDS:-1200} s (KUEUE_SECONDS)"
    rm -f "$kueue_why"
    exit 0
fi
kueue_module=$(cd "$root/tests/cluster/schedulers" 2>/dev/null && go list -m -f '{{.Dir}}' sigs.k8s.io/kueue 2>>"$kueue_why")
if ((kueue_status == 3)) || [[ -z $kueue_module ]]; then
    echo "skip kueue: $(tail -n 1 "$kueue_why")"
    rm -f "$kueue_why"
    exit 0
fi
rm -f "$kueue_why"
((kueue_status == 0)) || {
    echo "not ok the Kueue manager is built"
    exit 1
}
