# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# The share of the GPUs' peak that a step uses, for GPUs with known and unknown names. Emulated only. Needs python3.
reference alone

# utilised NAME TERA DEVICES: the plan names this peak, and the last step has the share of it that these devices used. Log lines
# round to a tenth of a per cent, and emulated GPUs use less, so the number is read from the file of curves.
utilised() {
    grep -Eq "^peak +$2 TFLOP/s a GPU in dense" "$1.log" && grep -Eq '^step .* MFU [0-9.]+ %' "$1.log" &&
        python3 - "$1.log" "$1" "$2" "$3" <<'PYTHON'
import glob, re, struct, sys
log, folder, tera, devices = open(sys.argv[1]).read(), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
flop = float(re.search(r"an example takes ([\d.e+-]+) GFLOP", log)[1]) * 1e9
events = b"".join(open(name, "rb").read() for name in glob.glob(f"{folder}/**/*tfevents*", recursive=True))
found = {}
for tag in (b"train/examples_per_second", b"train/mfu"):  # a summary's value: its tag, then field 2, a float
    at = [i + len(tag) + 1 for i in range(len(events)) if events.startswith(tag, i)]
    found[tag] = [struct.unpack("<f", events[i:i + 4])[0] for i in at]
rates, shares = found.values()
due = [rate * flop / (tera * 1e12 * devices) for rate in rates]
sys.exit(not (shares and len(shares) == len(due) and all(abs(a / b - 1) < 1e-3 for a, b in zip(shares, due))))
PYTHON
}
grep -Eq 'MFU|^peak' alone.log
(($? == 1))
verdict $? "no utilisation is reported for a GPU with an unknown peak" "$(grep -E 'MFU|^peak' alone.log)"
precision=BFloat16 job known 4 GPU Mirrored known Auto Crew 2 2
EMULATED_NAME='NVIDIA H200' lone known && utilised known 989 2
verdict $? "for GPUs with a known peak, a step reports the utilisation (MFU)" "$(grep -E '^(peak|step)' known.log | tail -n 2)"
