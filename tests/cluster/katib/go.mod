// The peer of tests/bench/sweeps.
module coxswain.dev/tests/cluster/katib

go 1.26.0

require github.com/kubeflow/katib v0.19.0
