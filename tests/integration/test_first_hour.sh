#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From files of one's own to a score on examples that were held out: `cox generate NAME --data FOLDER >NAME.yaml` and
# `cox run NAME.yaml --volume data=FOLDER`, with nothing edited between them. The files are as people have them: a
# table of float64 sorted by its labels, numbers to predict, digits, a text. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
# shellcheck source=tests/integration/verdict.sh
. "$root/tests/integration/verdict.sh"
# shellcheck source=tests/integration/cox.sh
. "$root/tests/integration/cox.sh"
# shellcheck source=tests/integration/digits.sh
. "$root/tests/integration/digits.sh"
# shellcheck source=tests/integration/arrays.sh
. "$root/tests/integration/arrays.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export HOME=$work
# shellcheck disable=SC2034 # cox.sh calls it
cox_command=(timeout 240 "$bin/cox")

# flowers: four lengths of each of 150 flowers, 50 of a kind after one another
flowers() {
    awk 'BEGIN {
        srand(3); split("5.0 3.4 1.5 0.2 5.9 2.8 4.3 1.3 6.6 3.0 5.6 2.0", mean)
        for (i = 0; i < 150; i++) {
            for (j = 1; j <= 4; j++) printf "%.1f ", mean[4 * int(i / 50) + j] + (rand() + rand() + rand() - 1.5) * 0.5
            print int(i / 50)
        }
    }'
}

# pictures FOLDER: the images of an IDX file on standard input as PNG files, FOLDER/bar<class>/<number>.png
pictures() {
    python3 -c '
import os, struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
pixels = sys.stdin.buffer.read()[16:]
for i in range(len(pixels) // 784):
    rows = b"".join(b"\0" + pixels[784 * i + 28 * y : 784 * i + 28 * y + 28] for y in range(28))
    name = "%s/bar%d/%03d.png" % (sys.argv[1], i % 10, i)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))' "$1"
}

# learn NAME FOUND BOUND [WORD…]: a job from the files in the folder NAME, of which cox generate says FOUND, and what it
# has learned: the accuracy in per cent is at least BOUND
learn() {
    local name=$1 found=$2 bound=$3
    shift 3
    cox 0 generate "$name" --data "$name" && mv out "$name.yaml" && grep -qF "$found" err || return
    cox 0 run "$name.yaml" --volume "data=$work/$name" "$@" || return
    right=$(sed -n "s/^$name is done: \([0-9.]*\) % right on .*/\1/p" out)
    awk -v right="${right:-0}" -v bound="$bound" 'BEGIN { exit !(right >= bound) }'
}

mkdir flowers prices digits text words
flowers >rows
cut -d' ' -f1-4 rows | array flowers/X.npy '<f8' '150, 4' 'd<*'
cut -d' ' -f5 rows | array flowers/y.npy '<i8' '150,' 'q<*'
learn flowers 'X.npy and y.npy: 150 examples of 4 values, 3 classes, 30 held out' 85
verdict $? "a table of float64, sorted by its labels" "$(tail -n 3 err out)"
last=$(grep -E '^step ([0-9]+)/\1  100 %' out)
[[ $last =~ '  held out '[0-9.]+' %'$ ]]
verdict $? "the line of the last step has a score, and no time that is left" "$last"
exported=$(grep '^flowers is done' out) && grep -qE '^flowers is done: [0-9.]* % right on 30 held-out examples with the best weights, of step [0-9]*, which are exported$' out &&
    cox 0 predict flowers all && grep -q "accuracy ${right}[0-9] %" out
verdict $? "the exported weights are the best, and have the score of the summary" "$exported; $(cat out err)"

# sweep_of NAME FOLDER BOUND [WORD…]: a sweep of the job, whose best trial has a loss of at most BOUND
sweep_of() {
    local name=$1 folder=$2 bound=$3
    shift 3
    cox 0 generate "$name" --data "$folder" --sweep && mv out "$name.yaml" && grep -q "^#   cox sweep run $name.yaml --volume data=$folder$" "$name.yaml" &&
        cox 0 sweep run "$name.yaml" --volume "data=$work/$folder" "$@" && ! grep -q warning err || return
    best=$(sed -n "s/^  best  *$name-[0-9]*: validationLoss \([0-9.e-]*\)$/\1/p" out)
    awk -v best="${best:-9}" -v bound="$bound" 'BEGIN { exit !(best <= bound) }'
}
sweep_of kinds flowers 0.3 && grep -q '^kinds is complete: 8 of 8 trials succeeded' out && [[ $(cut -d, -f3- .local/state/coxswain/default-kinds/trials.csv | sort -u | wc -l) -ge 8 ]]
verdict $? "a sweep of the same job as it stands, whose trials differ" "$(tail -n 9 err out; head -n 3 .local/state/coxswain/default-kinds/trials.csv)"

{ echo 'sepal length,sepal width,petal length,petal width,kind' && awk '{ split("setosa versicolor virginica", kind); print $1 "," $2 "," $3 "," $4 "," kind[$5 + 1] }' rows; } >words/flowers.csv
learn words 'flowers.csv: 150 examples of 4 values, 3 classes, 30 held out' 85
verdict $? "a table as text, whose labels are words" "$(tail -n 3 err out)"

# The labels come first in UCI's tables.
mkdir wine && awk -F, -v OFS=, '{ print $5, $1, $2, $3 }' words/flowers.csv | sed '1s/kind/class/' >wine/wine.csv
why='label: class, because of its name, though it is not the last column; --label COLUMN takes another'
cox 0 generate wine --data wine && grep -qF '150 examples of 3 values, 3 classes' err && grep -qxF "cox generate: $why" err && grep -qxF "# $why" out &&
    grep -qx ' *labelColumn: class' out && cox 0 generate wine --data wine --label 'petal length' && grep -qxF 'cox generate: label: petal length, as --label says' err
verdict $? "a column that is called class has the labels, which message and manifest say" "$(cat err)"

# New rows, whose columns are in another order, without the training data.
rm -r words/flowers.csv
printf 'petal length,petal width,sepal length,sepal width\n1.5,0.2,5,3.4\n5.6,2,6.6,3\n' >new.csv
cox 0 predict words --data new.csv && sed 's/0\.[0-9]*$/P/; s/1\.0*$/P/' out | cmp -s - <(printf 'class,probability\nsetosa,P\nvirginica,P\n') &&
    cox 0 predict words 1 --data new.csv && grep -q '^class virginica: ' out
verdict $? "new rows of a table, whose answers have the names of classes" "$(cat err out)"
# New rows with labels, one of which is wrong: their share is told beside the table.
printf 'kind,petal length,petal width,sepal length,sepal width\nsetosa,1.5,0.2,5,3.4\nsetosa,5.6,2,6.6,3\n' >labelled.csv
cox 0 predict words --data labelled.csv && [[ $(sed 's/,.*//' out | tr '\n' ' ') == 'class setosa virginica ' ]] && grep -qxF 'accuracy 50.00 %: 1 of 2' err
verdict $? "new rows with labels have a score" "$(cat err out)"
printf 'petal length,petal width,sepal length,sepal width,kind\n1.5,0.2,5,3.4,rose\n' >bad.csv
cox 1 predict words --data bad.csv && grep -qF 'line 2, column 5: no training example has the label "rose"' err
verdict $? "a label that is no class is named" "$(cat err out)"
printf 'petal length,petal width,sepal length,kind\n1.5,0.2,5,rose\n' >bad.csv
cox 1 predict words --data bad.csv && grep -qF -- '--data bad.csv: there is no column sepal width, which the model has learned from' err
verdict $? "a column that is missing is named" "$(cat err out)"

# The price is nearly a sum of the columns, which have other units; the loss is the share that is not explained.
awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) { a = rand(); b = 1000 * rand(); print a, b, 250000 + 40000 * a + 50 * b + 100 * rand() } }' >rows
cut -d' ' -f1-2 rows | array prices/X_train.npy '<f8' '400, 2' 'd<*'
cut -d' ' -f3 rows | array prices/y_train.npy '<f8' '400,' 'd<*'
cox 0 generate prices --data prices --sweep && grep -q 'path: coxswain.model.layers.0.units' out && grep -q 'metric: validationLoss' out && grep -q 'goal: Minimize' out
verdict $? "a sweep of numbers to predict has a loss, and units of a layer" "$(cat err)"
cox 0 generate prices --data prices && mv out prices.yaml && grep -q '400 examples of 2 values, 1 number to predict, 80 held out' err &&
    cox 0 run prices.yaml --volume "data=$work/prices" &&
    read -r rmse loss <<<"$(sed -n 's/^prices is done: RMSE \([0-9.]*\) (loss \([0-9.]*\)) on .*/\1 \2/p' out)" && awk -v loss="${loss:-1}" 'BEGIN { exit !(loss < 0.05) }'
verdict $? "a table whose labels are numbers" "$(tail -n 3 err out)"
deviation=$(sed -n 's/.*labels from mean .* and deviation \([0-9.e+]*\)$/\1/p' out | head -n 1)
awk -v rmse="$rmse" -v loss="$loss" -v deviation="${deviation:-0}" 'BEGIN { real = rmse / deviation; exit !(deviation > 10000 && real * real > loss - 0.0001 && real * real < loss + 0.0001) }' &&
    cox 0 predict prices all && grep -qF "loss $loss, RMSE $rmse in the labels' unit" out && cox 0 predict prices all --json && grep -q '"rmse":' out && cox 0 runs && grep -q "  RMSE $rmse " out
verdict $? "their error is told in their own unit" "RMSE $rmse, loss $loss, deviation $deviation; $(cat err out)"
echo 0.5 500 | array new.npy '<f8' '1, 2' 'd<*'
cox 0 predict prices --data new.npy && awk '/^example 0: / { price = $3 } END { exit !(price > 290000 && price < 300000) }' out
verdict $? "a new row's price, in the unit of the labels" "$(cat err out)"
cox 0 predict prices 0 && awk '/^value: / { price = $2 } /^example 0 of 80 has the value / { label = $8 }
    END { exit !(label > 250000 && label < 340100 && price > label - 5000 && price < label + 5000) }' out
verdict $? "a held-out row's price beside its label" "$(cat err out)"
cox 0 predict prices 0 --data new.npy && printed '^value: 29[0-9]*' && ! grep -q '^example' out && cp out before && cox 2 predict prices 80 && grep -q 'from 0 to 79' err &&
    ! grep -q -- '--predict' err
verdict $? "and a new row's alone" "$(cat err out)"
awk '{ print $1 + 1, $2 }' rows | array prices/X_train.npy '<f8' '400, 2' 'd<*'
cox 1 predict prices && grep -q 'the training data has changed since these weights were trained: .*; put the files back, or train again' err
verdict $? "held-out examples of training data that has changed are not those of the run" "$(cat err out)"
cox 0 predict prices 0 --data new.npy && cmp -s out before && rm prices/*_train.npy && cox 0 predict prices 0 --data new.npy && cmp -s out before
verdict $? "a new row's price needs no training data" "$(cat err out)"
awk '{ print $1 + 1, $2 }' rows | array prices/X_train.npy '<f8' '400, 2' 'd<*'
cut -d' ' -f3 rows | array prices/y_train.npy '<f8' '400,' 'd<*'
cox 1 run prices.yaml --volume "data=$work/prices" --fresh && grep -q 'does not fit this job: the training data has changed since' out &&
    grep -q '^  .* --fresh --delete-volumes$' out && ! grep -q -- '--fresh$' out &&
    cox 0 run prices.yaml --volume "data=$work/prices" --fresh --delete-volumes
verdict $? "training on data that has changed names the command that begins anew" "$(tail -n 9 err out)"

# Words, booleans and an identifier, which cox generate leaves out; a hole ends it with the option that helps. Rows as JSON Lines, too.
mkdir -p passengers riders
awk 'BEGIN { srand(7); print "name,class,sex,age,alone,port,survived"
    for (i = 0; i < 300; i++) { sex = rand() < 0.5 ? "male" : "female"; alone = rand() < 0.5 ? "true" : "false"; port = substr("CQS", 1 + int(3 * rand()), 1)
        printf "passenger %d,%d,%s,%d,%s,%s,%s\n", i, 1 + int(3 * rand()), sex, 1 + 79 * rand(), alone, port, (sex == "female") == (port != "S" || alone == "true") ? "yes" : "no" } }' >table
awk -F, -v OFS=, 'NR == 9 { $4 = ""; $6 = "NA" } { print }' table >passengers/all.csv
cox 1 generate passengers --data passengers && grep -qF 'all.csv: values are missing in age (1 of 300, the first in line 9), port (1 of 300, the first in line 9); correct the table, or leave columns out: --skip age,port; --drop-rows leaves out the rows with missing values instead' err &&
    cox 0 generate passengers --data passengers --skip age,port && grep -qF 'skipColumns:' out && grep -q '300 examples of 4 values from 3 columns, 2 classes' err
verdict $? "columns with missing values are named at once, with the option that leaves them out" "$(cat err)"
awk -F, -v OFS=, 'NR > 200 && NR % 10 == 0 { $4 = "" } { print }' table >passengers/all.csv
cox 0 generate passengers --data passengers --drop-rows && mv out passengers.yaml && grep -qF '290 examples of 8 values (10 rows left out, since values are missing) from 5 columns, 2 classes, 58 held out' err &&
    grep -qx '      missing: DropRow' passengers.yaml && cox 0 run passengers.yaml --volume "data=$work/passengers" --state dropped && grep -q '^chief: data .* rows of 8 values from .*, without 10 rows with missing values' out &&
    grep -q 'right on 58 held-out examples' out && cox 0 predict dropped all && grep -q ' of 58$' out
verdict $? "rows with missing values are left out by --drop-rows" "$(cat err out)"
cox 1 run passengers.yaml --volume "data=$work/passengers" --set spec.coxswain.data.missing=null --state refused && [[ ! -s out ]] &&
    grep -qF 'all.csv: values are missing in age (10 of 300, the first in line 210)' err && grep -qF 'data.missing: DropRow leaves out the rows with missing values instead' err
verdict $? "and refused otherwise, before a pod starts" "$(cat err)"
rm -r dropped
cp table passengers/all.csv
learn passengers '300 examples of 8 values from 5 columns, 2 classes, 60 held out' 90 && cox 0 generate again --data passengers &&
    grep -qF 'left out, since each row has another word there, as identifiers have: name (data.skipColumns)' err
verdict $? "a table with words, booleans and an identifier" "$(tail -n 3 err out)"
weights=.local/state/coxswain/default-passengers/volumes/default/runs/passengers/model.safetensors
cox 0 run passengers.yaml --volume "data=$work/passengers" --set metadata.name=alone2 --set spec.workers.replicas=1 --set spec.coxswain.training.logicalShards=2 &&
    grep -qF "cox run: spec.coxswain.export.path is now alone2/model.safetensors, since the job's name is alone2" err &&
    cmp "$weights" "${weights//passengers/alone2}"
verdict $? "one worker learns the bits of two from words" "$(tail -n 3 err out)"
rm passengers/all.csv
printf 'sex,port,alone,class,age\nfemale,Q,yes,1,30\nmale,S,False,2,31\nmale,Q,true,2,31\n' >new.csv
cox 0 predict passengers --data new.csv && [[ $(cut -d, -f1 out | tr '\n' ' ') == 'class yes yes no ' ]] && ! grep -qv '^weights: ' err
verdict $? "new rows with words, without the training data" "$(cat out err)"
printf 'sex,port,alone,class,age\nfemale,Z,yes,1,30\n' >new.csv
cox 0 predict passengers --data new.csv && grep -qF 'new.csv: line 2, column 2: the training table does not have the word "Z" there, which counts as none of its words' err
verdict $? "a new word is told" "$(cat out err)"
for i in {1..20000}; do echo "female,Q,yes,1,$i"; done | cat <(echo sex,port,alone,class,age) - >many.csv
"${cox_command[@]}" predict passengers --data many.csv 2>err | head -n 1 >out
[[ ${PIPESTATUS[0]} == 0 && $(cat out) == 'class,probability' ]] && ! grep -qv '^weights: ' err
verdict $? "a reader that has enough ends the prediction quietly" "$(cat out err)"
awk -F, 'NR > 1 { printf "{\"class\": %d, \"sex\": \"%s\", \"alone\": %s, \"port\": \"%s\", \"survived\": %s}\n", $2, $3, $5, $6, $7 == "yes" ? "true" : "false" }' table >riders/all.jsonl
learn riders '300 examples of 7 values from 4 columns, 2 classes, 60 held out' 90
verdict $? "JSON Lines with words and booleans" "$(tail -n 3 err out)"

# Kaggle's layout: the labels are in the second column of train.csv, and test.csv has none. Values are missing, names are quoted, and tickets
# are numbers and words.
mkdir titanic && awk -v folder=titanic 'BEGIN { srand(9); head = "Pclass,Name,Sex,Age,SibSp,Parch,Ticket,Fare,Cabin,Embarked"
    print "PassengerId,Survived," head >folder "/train.csv"; print "PassengerId," head >folder "/test.csv"; print "PassengerId,Survived" >folder "/gender_submission.csv"
    for (i = 1; i <= 400; i++) {
        sex = rand() < 0.5 ? "male" : "female"; class = 1 + int(3 * rand())
        rest = sprintf("%d,\"Surname%d, Mr. \"\"Jo\"\" (of %d)\",%s,%s,%d,%d,%s%d,%.4f,%s,%s", class, i, i, sex, rand() < 0.2 ? "" : int(80 * rand()), 3 * rand(), 3 * rand(),
            rand() < 0.3 ? "A/5 " : "", 10000 + i % 350, 80 * rand(), rand() < 0.8 ? "" : "C" i, i == 62 ? "" : "S")
        if (i <= 300) print i "," (sex == "female" && class < 3) "," rest >folder "/train.csv"
        else { print i "," rest >folder "/test.csv"; print i ",0" >folder "/gender_submission.csv" } } }'
cox 1 generate titanic --data titanic && grep -q 'train.csv: values are missing in Age (.*), Cabin (.*), Embarked (1 of 300, the first in line 63); .*column 9 (Ticket): "A/5 .*--skip Age,Ticket,Cabin,Embarked;' err &&
    cox 0 generate titanic --data titanic/train.csv --skip Age,Ticket,Cabin,Embarked && mv out file.yaml &&
    cox 0 generate titanic --data titanic --skip Age,Ticket,Cabin,Embarked && cmp out file.yaml && mv out titanic.yaml && grep -qF '300 examples of ' err && grep -qF ', 2 classes, 60 held out' err &&
    grep -qF 'label: Survived, because of its name' err &&
    grep -qxF 'cox generate: left out, since its values number the rows: PassengerId (data.skipColumns)' err &&
    grep -qxF 'cox generate: test.csv has no column Survived, so a part of train.csv is held out instead; after training, its labels are predicted by: cox predict titanic --data titanic/test.csv' err
verdict $? "a table to test with that has no labels is left out, with what it is good for" "$(cat err)"
cox 0 run titanic.yaml --volume "data=$work/titanic" && right=$(sed -n 's/^titanic is done: \([0-9.]*\) % right on .*/\1/p' out) && awk -v right="${right:-0}" 'BEGIN { exit !(right >= 90) }' &&
    cox 0 predict titanic --data titanic/test.csv && [[ $(wc -l <out) == 101 ]] &&
    awk -F, 'NR == FNR { if (FNR > 1) wanted[FNR] = $5 == "female" && $2 < 3; next } FNR > 1 && $1 == wanted[FNR] { right++ } END { exit !(right >= 90) }' titanic/test.csv out
verdict $? "its labels are predicted after training" "$(tail -n 3 err out)"

# The same as text: the error is in the unit of the labels, as one finds it from the values that are printed.
mkdir costs && { echo 'a,b,cost' && tr ' ' ',' <rows; } >costs/costs.csv && sed -n '1p;2,41p' costs/costs.csv >some.csv
cox 0 generate costs --data costs && mv out costs.yaml && cox 0 run costs.yaml --volume "data=$work/costs" && cox 0 predict costs --data some.csv &&
    paste -d, some.csv out | awk -F, 'NR > 1 { d = $3 - $4; if (d < 0) d = -d; a += d; s += d * d; n++ } END { printf "%.4g %.4g %d\n", sqrt(s / n), a / n, n }' >wanted &&
    sed -n "s/^RMSE \([0-9.e+]*\), MAE \([0-9.e+]*\), in the labels' unit: \([0-9]*\) examples\$/\1 \2 \3/p" err |
    awk '{ printf "%.4g %.4g %d\n", $1, $2, $3 }' | cmp -s - wanted && awk '{ exit !($3 == 40 && $1 < 5000 && $2 <= $1) }' wanted
verdict $? "new rows whose labels are numbers have an error in their unit" "$(cat wanted err; head -n 3 out)"

# Tables with integers as names and files to test with, one of which has an escape in its name.
mkdir years others
awk 'BEGIN { print "kind,2019,2020" } { split("setosa versicolor virginica", kind); print kind[$5 + 1] "," $1 "," $3 }' <(flowers) >years/all.csv
awk -F, 'BEGIN { OFS = "," } NR == 1 || NR % 2 { print $2, $3, $1 }' years/all.csv >others/kinds_train.csv
awk -F, 'BEGIN { OFS = "," } NR == 1 || NR % 2 == 0 { print $2, $3, $1 }' years/all.csv >others/kinds_test.csv
learn others 'kinds_train.csv: 75 examples of 2 values, 3 classes, 75 more to test with' 85
verdict $? "tables to learn from and to test with, whose names are integers" "$(tail -n 3 err out)"
cp others/kinds_train.csv $'years/\e[31m.csv' && rm years/all.csv
cox 0 generate years --data years && ! grep -q $'\e' err && grep -q 'found .*\.csv: 75 examples' err
verdict $? "an escape in a file's name is not printed" "$(cat -v err)"
cox 2 generate years --data others --model lenet && grep -q 'only mlp learns from' err &&
    cox 1 generate years --data others --label height && grep -q 'there is no column height' err
verdict $? "what does not fit the files is refused" "$(cat err)"

sed 's/type: MultiWorkerMirrored/type: MultiWorkerMirored/' flowers.yaml >typo.yaml
cox 1 run typo.yaml --volume "data=$work/flowers" && grep -qF 'spec.coxswain.strategy.type: Unsupported value: "MultiWorkerMirored" (did you mean "MultiWorkerMirrored"?)' err
verdict $? "the word that a mistyped one was meant to be is suggested" "$(cat err)"

(cd digits && make_digits && mv images my-images-idx3-ubyte && mv labels my-labels-idx1-ubyte)
learn digits '700 examples of 28x28 pixels, 10 classes, 140 held out' 90 --set spec.coxswain.training.epochs=5
verdict $? "images" "$(tail -n 3 err out)"

sweep_of figures digits 0.8 --set spec.maxTrials=3 --set spec.template.coxswain.training.epochs=4 && grep -q '^figures is complete: 3 of 3' out && grep -q 'optimizer.weightDecay$' figures.yaml
verdict $? "a sweep over images" "$(tail -n 9 err out)"

# JSON Lines: a table, whose new rows have their fields in another order, and texts.
mkdir objects documents
flowers | awk '{ split("setosa versicolor virginica", kind)
    printf "{\"sepal length\": %s, \"sepal width\": %s, \"petal length\": %s, \"petal width\": %s, \"kind\": \"%s\"}\n", $1, $2, $3, $4, kind[$5 + 1] }' >objects/flowers.jsonl
learn objects 'flowers.jsonl: 150 examples of 4 values, 3 classes, 30 held out' 85
verdict $? "a table of JSON Lines" "$(tail -n 3 err out)"
printf '{"petal length": 1.5, "petal width": 0.2, "sepal length": 5, "sepal width": 3.4}\n' >new.jsonl
cox 0 predict objects --data new.jsonl && printed '^class,probability$' '^setosa,'
verdict $? "new rows of JSON Lines" "$(cat err out)"
mkdir rows-of-today && mv new.jsonl rows-of-today/today.jsonl && cp out wanted && cox 0 predict objects --data rows-of-today && cmp out wanted &&
    cp rows-of-today/today.jsonl rows-of-today/more.jsonl && cox 1 predict objects --data rows-of-today &&
    grep -qF -- '--data rows-of-today: the folder holds 2 tables (*.csv, *.tsv, *.jsonl, *.ndjson); name one of them' err
verdict $? "a folder stands for the only table in it" "$(cat err out)"
echo '{"sepal length": 1, "kind": "rose"}' >>objects/flowers.jsonl
cox 1 generate objects --data objects && grep -qF 'flowers.jsonl: line 151 has no field "sepal width", which the first line has' err
verdict $? "an object without a field is named" "$(cat err)"
for i in {1..40}; do
    printf '{"id": %d, "text": "the quick brown fox jumps over the lazy dog \\u00e9\\nwhile five boxing wizards jump over the lazy dog."}\n' "$i"
done >documents/train.jsonl
cox 0 generate documents --data documents && mv out documents.yaml && grep -q 'train.jsonl: [0-9]* windows of 256 bytes' err &&
    grep -q 'format: Bytes' documents.yaml && cox 0 run documents.yaml --volume "data=$work/documents" --set spec.coxswain.training.steps=5 \
    --set spec.coxswain.training.batchSize=2 --set spec.coxswain.model.depth=1 --set spec.coxswain.model.context=64 && grep -q '^documents is done: perplexity ' out
verdict $? "documents of JSON Lines" "$(tail -n 3 err out)"

# The same digits as PNG files, a folder for each class; new ones are in another folder, without classes.
mkdir pictures new
pictures pictures <digits/my-images-idx3-ubyte && mv pictures/{bar0/000.png,bar9/009.png} new/ && cp new/009.png 'new/two words.png'
learn pictures 'found folders of images: 698 examples of 28x28x1 pixels, 10 classes, 139 held out' 90 --set spec.coxswain.training.epochs=5
verdict $? "a folder of images" "$(tail -n 3 err out)"
weights=.local/state/coxswain/default-pictures/volumes/default/runs/pictures/model.safetensors
cox 0 run pictures.yaml --volume "data=$work/pictures" --set metadata.name=alone --set spec.workers.replicas=1 --set spec.coxswain.training.logicalShards=2 \
    --set spec.coxswain.training.epochs=5 && cmp "$weights" "${weights//pictures/alone}"
verdict $? "one worker learns the bits of two from images" "$(tail -n 3 err out)"
cox 0 predict pictures --data new && [[ $(wc -l <out) == 3 ]] &&
    printed '^000.png: class bar0 [0-9.]* %, class bar[0-9] [0-9.]* %' '^009.png: class bar9 ' '^two words.png: class bar9 ' &&
    cox 0 predict pictures 0 --data new/009.png && printed '^class bar9: '
verdict $? "new images have their files' names and the classes' names" "$(cat out err)"
cox 0 predict pictures --data pictures && grep -q '^accuracy [0-9.]* %: [0-9]* of 698$' err && printed '^bar0/010.png: class bar0 '
verdict $? "new images in folders of classes have a score" "$(head -n 3 out; cat err)"
head -c 300 new/000.png >'new/half.png'
cox 1 predict pictures --data new && grep -qF 'new/half.png: the PNG file is damaged or cut off (the file ends early); replace it, or take it out' err
verdict $? "an image that is cut off is named" "$(cat err out)"
head -c 300 new/009.png >pictures/bar9/cut.png
cox 1 run pictures.yaml --volume "data=$work/pictures" --fresh --delete-volumes && grep -q '/bar9/cut.png: the PNG file is damaged or cut off' out err
verdict $? "a training image that is cut off ends the job with its name" "$(tail -n 5 out err)"
mv pictures/bar9/cut.png new/half.png
mkdir halves && mkdir halves/{train,val} && cp -r pictures/bar[0-4] halves/train && cp -r pictures/bar[0-4] halves/val && rm halves/train/*/?[02468]?.png halves/val/*/?[13579]?.png
cox 0 generate halves --data halves && grep -q 'found train: [0-9]* examples .*, 5 classes, [0-9]* more to test with' err && mv out halves.yaml && grep -q 'images: val' halves.yaml
verdict $? "folders named train and val" "$(cat err)"
cox 1 generate flat --data new && grep -q 'new holds images, and no folders of classes; put the images of each class into a folder' err
verdict $? "images without classes are refused" "$(cat err)"

yes 'the quick brown fox jumps over the lazy dog while five boxing wizards jump.' | head -c 60000 >text/corpus.txt
cox 0 generate text --data text && mv out text.yaml && grep -q 'corpus.txt: 234 windows of 256 bytes, 46 held out' err &&
    cox 0 run text.yaml --volume "data=$work/text" --set spec.coxswain.training.steps=25 --set spec.coxswain.training.batchSize=8 \
        --set spec.coxswain.model.depth=1 --set spec.coxswain.model.context=64 &&
    perplexity=$(sed -n 's/^text is done: perplexity \([0-9.]*\) .*/\1/p' out) &&
    awk -v perplexity="${perplexity:-256}" 'BEGIN { exit !(perplexity < 20) }'
verdict $? "a text" "$(tail -n 3 err out)"

cox 0 generate words-sweep --data text --sweep && mv out words.yaml && grep -q '^# All trials together take about [0-9]* minutes on two processors; ' words.yaml &&
    cox 0 sweep run words.yaml --volume "data=$work/text" --set spec.maxTrials=2 --set spec.template.coxswain.training.steps=10 \
        --set spec.template.coxswain.model.depth=1 --set spec.template.coxswain.model.context=64 && ! grep -q warning err &&
    grep -q '^words-sweep is complete: 2 of 2 trials succeeded' out && grep -q '^  best  *words-sweep-[01]: validationLoss [0-9.]*$' out
verdict $? "a sweep over a text, which says how long it takes" "$(cat err; tail -n 9 out)"
