#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coxswain-storage and a real S3 server: objects are written and read back, through faults, refusals, a killed server and rotated credentials.
# Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(cd "${BUILD:?}" && pwd)
work=$(mktemp -d)
trap 's3_end; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/integration/verdict.sh"
. "$root/tests/s3/server.sh"
s3_start
proxy_start

head -c 50000000 /dev/urandom >large
head -c 1000 /dev/urandom >small
: >empty
names=('plain' 'a folder/with spaces & +plus%25.txt' 'ünï/cödé' '~tilde-_.!*()'"'"',=:@$')
result=0
for name in "${names[@]}"; do storage put small "names/$name" && storage get "names/$name" back && cmp small back || result=1; done
[[ $(storage list names/ | sort) == "$(printf '1000 names/%s\n' "${names[@]}" | sort)" ]]
verdict $((result + $?)) "keys of any characters are signed, written, listed and read" "$(storage list)"

storage put large large && storage get large back && cmp large back && storage put empty empty && storage get empty none && cmp empty none
verdict $? "a large file is written in parts and read in ranges, and an empty one is copied, too"

mkdir many && for i in {1..1200}; do echo "$i" >"many/$i"; done
export -f storage
export endpoint bin s3_endpoint s3_bucket work
# shellcheck disable=SC2016 # the inner shell expands it
seq 1200 | xargs -P 8 -n 1 bash -c 'storage put many/$0 many/d$(($0 % 7))/$0' && mkdir copy &&
    storage fetch copy --prefix many 2>said && [[ $(find copy -type f | wc -l) == 1200 && $(cat copy/d3/10) == 10 ]]
verdict $? "a folder with more objects than one page lists is fetched" "$(find copy | head)"
rm copy/d3/10 && storage fetch copy d3 d3/10 'd4/*1' --prefix many 2>said && grep -q 'fetched=1 ' said && [[ $(cat copy/d3/10) == 10 ]]
verdict $? "files that are there already are not fetched again" "$(cat said)"
! storage fetch copy nothing --prefix many 2>said && grep -q "$s3_endpoint/runs: the bucket has no object at many/nothing; correct the bucket, the prefix or the path" said
verdict $? "a path without objects fails, and the message names it" "$(cat said)"
! storage fetch copy --prefix many --ceiling 1000 2>said && grep -q 'raise cacheSize' said
verdict $? "objects larger than the ceiling are refused" "$(cat said)"

# ---- faults
endpoint=$proxy_endpoint
proxy_rules '[{"method":"GET","fault":"cut-answer","every":2,"times":8},{"method":"GET","fault":"status","status":503,"times":5}]'
storage get large back && cmp large back && [[ $(grep -c cut-answer proxy.log) == 8 ]]
verdict $? "cut answers and SlowDown: the bytes are right" "$(cut -c1-100 proxy.log)"
proxy_rules '[{"path":"partNumber","fault":"cut-request","every":2,"times":3},{"path":"uploads","fault":"status","status":500,"times":1},
    {"method":"POST","path":"uploadId","fault":"lose-answer","times":1}]'
storage put large faulty && storage get faulty back && cmp large back && grep -q 'lose-answer 200' proxy.log
verdict $? "cut uploads, and a lost answer to the end of an upload: the bytes are right" "$(cut -c1-100 proxy.log)"
proxy_rules '[{"method":"PUT","path":"manifest","fault":"lose-answer","times":1}]'
storage put small manifest --if-absent && grep -q 'PUT .*manifest lose-answer 200' proxy.log
verdict $? "a conditional write whose answer is lost has succeeded"
storage put empty manifest --if-absent 2>said
[[ $? == 3 ]] && grep -q 'an object of that name already' said
verdict $? "a second conditional write fails" "$(cat said)"
for i in {1..8}; do
    echo "writer $i" >"writer$i"
    { storage put "writer$i" race --if-absent 2>/dev/null && echo "$i" >>winners; } &
    writers[i]=$!
done
wait "${writers[@]}"
[[ $(wc -l <winners) == 1 ]] && storage get race back && [[ $(<back) == "writer $(<winners)" ]]
verdict $? "one of eight concurrent conditional writes succeeds, and the object has its bytes" "$(cat winners back)"
proxy_rules '[{"fault":"status","status":503}]'
! storage list --patience 2 2>said && grep -q 'given up after [0-9]* attempts: GET .*overloaded' said
verdict $? "a request that never succeeds ends after --patience" "$(cat said)"

# ---- refusals
endpoint=$s3_endpoint
says() {
    [[ $(wc -l <said) == 1 ]] && grep -q "$1" said
    verdict $? "$2 is one sentence" "$(cat said)"
}
bucket=nowhere storage list 2>said
says 'there is no such bucket; create it or correct its name' "a missing bucket"
bucket=nowhere storage put small a 2>said
says 'there is no such bucket' "a missing bucket when writing"
endpoint=http://127.0.0.1:1 storage list --patience 1 2>said
says 'cannot be reached; correct it' "an endpoint that cannot be reached"
storage get names/none back 2>said
says 'no such object' "a missing object"
credentials first-key wrong-secret
storage list 2>said
says 'correct AWS_SECRET_ACCESS_KEY' "a wrong secret"
credentials other-key wrong-secret
storage list 2>said
says 'correct AWS_ACCESS_KEY_ID' "a wrong key"
credentials first-key first-secret-of-the-test
if [[ -e $bin/tests/clock-shift.so ]]; then
    echo 3600 >ahead
    LD_PRELOAD=$bin/tests/clock-shift.so CLOCK_SHIFT=$work/ahead storage list 2>said
    says 'clock' "a clock that is wrong"
fi

# ---- in the middle of an upload the server is killed and started again with other credentials
endpoint=$proxy_endpoint
: >proxy.log
proxy_rules '[{"path":"partNumber","fault":"delay","seconds":0.7}]'
storage put large rotated --connections 1 2>said &
upload=$!
until_true 10 grep -q 'partNumber=1.* 200' proxy.log
s3_kill
s3_start second-key second-secret-of-the-test
until_true 20 grep -q ' 403$' proxy.log
credentials second-key second-secret-of-the-test
wait $upload && storage get rotated back && cmp large back && grep -q ' 403$' proxy.log
verdict $? "credentials that are rotated in the middle of an upload take effect" "$(cat said; cut -c1-90 proxy.log)"
[[ -z $(find . -name '.partial-*') ]]
verdict $? "no partial file is left"
