# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Several GPUs in a worker, which sum through the host, and by NCCL among themselves and with another worker's
# GPUs.
reference single wide
most=$((gpu_count < 4 ? 2 : 4)) # of four shards, as many as have equal parts

if can_have "$most" "several GPUs in a worker"; then
    job mirrors 20 GPU Mirrored mirrors Hierarchical Crew 4 "$most"
    lone mirrors && same_weights mirrors single && grep -q "$most devices each: GPU" mirrors.log && ! grep -q NCCL mirrors.log
    verdict $? "Mirrored: $most GPUs in a worker, through the host, the bits of one" "$(tail -n 2 mirrors.log)"
    job couples 20 GPU MultiWorkerMirrored couples Hierarchical Crew 4 2
    crew couples 2 && same_weights couples single && ! says couples NCCL
    verdict $? "two workers with two GPUs each, through the host, the bits of one" "$(tails couples)"
    job central 20 GPU CentralStorage central Auto Crew 4 "$most"
    lone central && same_weights central single
    verdict $? "CentralStorage: $most GPUs and one set of variables, the bits of one" "$(tail -n 2 central.log)"
    sed 's/^training: {steps: 20/training: {steps: 24/' central.yaml >further.yaml
    lone further && grep -q 'step 24/24' further.log
    verdict $? "and goes on from its checkpoint" "$(tail -n 2 further.log)"
fi

if can_sum 1 "$most" "a worker's own GPUs that sum by NCCL"; then
    job four 20 GPU Mirrored four Auto Crew 4 "$most"
    lone four && same_weights four single && grep -q 'from GPU to GPU by NCCL' four.log
    verdict $? "Mirrored: a worker's $most GPUs sum by NCCL, the bits of one" "$(tail -n 2 four.log)"
fi
if ((gpu_count > 1 && gpu_count != most)) && can_sum 1 "$gpu_count" "all GPUs in a worker"; then
    batch=$gpu_count
    job all 20 GPU Mirrored all NCCL Crew "$gpu_count" "$gpu_count" && job all-one 20 GPU OneDevice all-one Auto Crew "$gpu_count"
    batch=
    lone all && lone all-one && same_weights all all-one
    verdict $? "all GPUs in a worker, the bits of one" "$(tail -n 2 all.log)"
fi
if can_sum 1 3 "three GPUs in a worker"; then
    wide broad Mirrored 3 && lone broad && grep -q 'by NCCL' broad.log && same_weights broad wide
    verdict $? "three GPUs, six shards, more than one part, the bits of one" "$(tail -n 2 broad.log)"
    job loose 8 GPU Mirrored loose NCCL Run 5 3
    same_each_time loose lone loose
    verdict $? "determinism Run: NCCL's own sums in a worker, the same each time" "$(tail -n 2 loose.log)"
fi
if can_sum 2 2 "two workers with two GPUs each by NCCL"; then
    job teams 20 GPU MultiWorkerMirrored teams NCCL Crew 4 2
    crew teams 2 && says teams 'by NCCL' && same_weights teams single
    verdict $? "two workers with two GPUs each sum by NCCL, the bits of one" "$(tails teams)"
fi
if can_sum 2 3 "two workers with three GPUs each by NCCL"; then
    wide teamed MultiWorkerMirrored 3 && crew teamed 2 && says teamed 'by NCCL' && same_weights teamed wide
    verdict $? "two workers with three each, more than one part, the bits of one" "$(tails teamed)"
fi

# warnings LOG: prints the number of warnings that two GPUs copy through the host
warnings() {
    grep -c 'GPU [01] and GPU [01] copy to each other by way of the host' "$1"
}
if plays_gpus; then
    spoils="through the host, not by NCCL: this worker's GPUs spoil what they copy to each other"
    job spoilt 20 GPU Mirrored spoilt Auto Crew 4 2
    EMULATED_PEERS_SPOIL=1 lone spoilt && same_weights spoilt single && grep -q "gradients go $spoils" spoilt.log &&
        ! grep -q 'from GPU to GPU' spoilt.log && [[ $(warnings spoilt.log) == 1 ]]
    verdict $? "Mirrored: through the host where a trial shows that direct copies arrive spoilt, the bits of one" "$(tail -n 2 spoilt.log)"
    job bound 4 GPU Mirrored bound NCCL Crew 2 2
    EMULATED_PEERS_SPOIL=1 lone bound
    [[ $? == 64 ]] && tail -n 1 bound.log | grep -q 'NCCL cannot sum.*GPUs spoil what they copy'
    verdict $? "exit 64: NCCL is asked for there" "$(tail -n 1 bound.log)"
    job hostly 20 GPU Mirrored hostly Auto Crew 4 2
    COXSWAIN_GPU_PEERS=0 EMULATED_PEERS_SPOIL=1 lone hostly && grep -q 'from GPU to GPU by NCCL' hostly.log &&
        ! grep -q 'by way of the host' hostly.log && same_weights hostly single
    verdict $? "by NCCL without direct ways where COXSWAIN_GPU_PEERS=0 wants it so" "$(tail -n 2 hostly.log)"
    job spoiled 20 GPU MultiWorkerMirrored spoiled Auto Crew 4 2
    start_pair spoiled '' EMULATED_PEERS_SPOIL=1
    await_crew && same_weights spoiled single && says spoiled 'gradients go through the host, not by NCCL: rank 1 .* the GPUs there spoil' &&
        ! says spoiled 'from GPU to GPU' && [[ $(warnings spoiled.0.log) == 0 && $(warnings spoiled.1.log) == 1 ]]
    verdict $? "two workers: through the host where the GPUs of one are such a pair, of which that one warns" "$(tails spoiled)"
    unsaved spoiled
    EMULATED_PEERS_SPOIL=1 loses_one spoiled 2 && same_weights spoiled single && ! says spoiled 'from GPU to GPU' && [[ $(warnings spoiled.0.log) == 1 ]]
    verdict $? "and when one is killed, the survivor does not try or warn again" "$(tails spoiled)"
fi
