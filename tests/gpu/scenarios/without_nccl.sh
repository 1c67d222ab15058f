# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# NCCL is missing, too old, or fails. Emulated only.
reference alone single

mkdir without
ln -s "$BUILD/libcublas.so.0" "$BUILD/libcublasLt.so.0" without/
job absent 4 GPU MultiWorkerMirrored absent NCCL
LD_LIBRARY_PATH=$work/without crew absent 2
[[ $? == 69 ]] && tail -n 1 absent.1.log | grep -q 'install NCCL 2.18 or later'
verdict $? "exit 69: NCCL is asked for and not installed" "$(tails absent)"
job anyway 12 GPU MultiWorkerMirrored anyway
LD_LIBRARY_PATH=$work/without crew anyway 2 && says anyway 'install NCCL.*gradients go through the host' && same_weights anyway alone
verdict $? "Auto goes on without it, and says so" "$(tails anyway)"
job apart 20 GPU Mirrored apart Auto Crew 4 2
LD_LIBRARY_PATH=$work/without lone apart && grep -q 'install NCCL.*gradients go through the host' apart.log && same_weights apart single
verdict $? "and so do a worker's own GPUs" "$(tail -n 2 apart.log)"
rm -r apart
EMULATED_NCCL_FAILS=init lone apart && grep -q "this worker's GPUs could not join.*unhandled system error" apart.log && same_weights apart single
verdict $? "also where NCCL fails" "$(tail -n 2 apart.log)"
rm -r apart
EMULATED_NCCL_FAILS=second lone apart && grep -q "this worker's GPUs could not join" apart.log && grep -q 'left behind: 0$' apart.log && same_weights apart single
verdict $? "and where it fails at the second GPU, what the first has of it is given back" "$(tail -n 2 apart.log)"
job forced 4 GPU Mirrored forced NCCL Crew 2 2
EMULATED_NCCL_FAILS=init lone forced
[[ $? == 162 ]] && tail -n 1 forced.log | grep -q 'NCCL cannot sum'
verdict $? "exit 162: NCCL is asked for and fails" "$(tail -n 1 forced.log)"
EMULATED_NCCL_VERSION=21703 crew absent 2
[[ $? == 69 ]] && says absent 'is 2.17.3; install 2.18'
verdict $? "exit 69: too old a one" "$(tails absent)"
job outdated 12 GPU MultiWorkerMirrored outdated
hold outdated 0 6
EMULATED_NCCL_VERSION=21703 start_crew outdated 2
until_true 60 says outdated 'is 2.17.3; install 2.18.*gradients go through the host' && ! grep libnccl "/proc/${pids[0]}/maps"
verdict $? "Auto goes on with a library that is too old, and has it no longer open" "$(tails outdated)"
undelay outdated
await_crew && same_weights outdated alone
verdict $? "with the bits of one" "$(tails outdated)"
EMULATED_GPUS_SHARED=1 start_crew absent 2
wait -n "${pids[@]}" # whoever is first; an operator ends the others
[[ $? == 64 ]] && tail -qn 2 absent.*.log | grep -q 'use the same GPU'
verdict $? "exit 64: two workers on one GPU" "$(tails absent)"
end_crew KILL
rm -r anyway
EMULATED_NCCL_FAILS=init crew anyway 2 && says anyway 'could not join.*unhandled system error' && same_weights anyway alone
verdict $? "Auto goes on where NCCL fails" "$(tails anyway)"
