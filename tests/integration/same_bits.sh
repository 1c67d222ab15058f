# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # by_hand.sh and the caller's job read what is set
#
# Trains one model in different ways and compares the bits. Source by_hand.sh first, and define `job NAME`, which writes NAME.yaml
# with the strategy in `strategy` and `devices` devices, and exports NAME.safetensors.

# whoever_computes REFERENCE [WHAT]: other threads, a crew, devices and stages come to the bits of REFERENCE, which one device has
# trained; verdicts begin with WHAT
whoever_computes() {
    local what=${2:+$2: }
    job threads
    worker_options=(--threads 3)
    lone threads && same_weights threads "$1"
    verdict $? "${what}the same bits again, with another number of threads" "$(tail -n 1 threads.log)"
    worker_options=(--threads 1)
    strategy=MultiWorkerMirrored job crew
    crew crew 2 && same_weights crew "$1"
    verdict $? "${what}two workers: the bits of one" "$(tails crew)"
    strategy=Mirrored devices=3 job mirrors
    lone mirrors && same_weights mirrors "$1"
    verdict $? "${what}three devices: the bits of one" "$(tail -n 1 mirrors.log)"
    strategy=Pipeline devices=2 job stages
    lone stages && same_weights stages "$1"
    verdict $? "${what}two stages: the bits of one" "$(tail -n 1 stages.log)"
}
