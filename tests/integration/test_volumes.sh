#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the Job of deploy/examples/volumes runs: the digits that `cox demo` takes and no others, each under its name only once it
# is whole. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/integration/scene.sh
. "$root/tests/integration/scene.sh"
manifest=$root/deploy/examples/volumes/load-digits.yaml

sed -n '/^ *- |$/,/^      volumes:/{s/^              //p}' "$manifest" >script
load() {
    FOLDER=$work/digits/mnist MIRROR=file://$work/mirror sh -ec "$(<script)" >said 2>&1
}

known=$(grep -o '"[0-9a-f]\{64\}"' "$root/operator/cli/dataset.c" | tr -d '"' | sort)
[[ -n $known && $(grep -o '[0-9a-f]\{64\}' script | sort) == "$known" ]]
verdict $? "it takes the files that cox demo takes" "$(grep '^load ' script)"

mkdir mirror
for name in t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz; do echo "not $name" | gzip >mirror/$name; done
! load && grep -q 't10k-images-idx3-ubyte.gz is not the expected file' said && ! compgen -G 'digits/mnist/*' >/dev/null
verdict $? "others are refused, and do not stay under that name" "$(cat said; find digits)"

data=${COXSWAIN_DATA:-$HOME/.cache/coxswain/data}
if [[ -e $data/mnist/t10k-labels-idx1-ubyte.gz ]]; then
    cp "$data"/mnist/t10k-* mirror
    load && cmp digits/mnist/t10k-images-idx3-ubyte.gz mirror/t10k-images-idx3-ubyte.gz && load
    verdict $? "those are loaded where a claim may hold something already" "$(cat said)"
else
    echo "skip the digits are loaded: set COXSWAIN_DATA to a folder with mnist/t10k-*.gz"
fi
