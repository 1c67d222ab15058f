// The definitions of others' objects that tests/cluster/scheduler-crds takes; nothing of it is compiled.
module coxswain.dev/tests/cluster/schedulers

go 1.26.0

require (
	sigs.k8s.io/kueue v0.17.0
	sigs.k8s.io/scheduler-plugins v0.34.1-devel
	volcano.sh/volcano v1.10.0
)
