# SPDX-License-Identifier: Apache-2.0
"""Every strategy in the crews that `make chaos` disturbs. A strategy is a line in ARRANGEMENTS."""
from dataclasses import dataclass, field

BATCH = 24
EXAMPLES = 450  # learnt from: the last batch of an epoch is short
SAVE_EVERY = 40

@dataclass
class Arrangement:
    name: str
    strategy: dict
    roles: dict  # how many of each
    devices: int = 1
    steps: int = 3000
    unit: int = 1  # steps that are repeated when somebody dies whose state others hold
    bits: bool = True  # the weights are an undisturbed run's, bit for bit
    lockstep: bool = True  # all members take the same steps
    alone: int = 0  # ranks that hold the whole state between them when nobody else does; 0: each does
    mirrored: bool = False  # each rank holds a shard of the state and its neighbour's; all of it is there while no two neighbours are lost
    training: dict = field(default_factory=dict)
    elastic: tuple = ()  # least and most workers
    begins: int = 0  # workers at first, where not all
    nodes: int = 0  # machines, as far as processes can tell; 0: all are on this one
    width: int = 32
    encrypted: bool = False  # by TLS
    program: bool = False  # its model is a program that XLA compiles (program.py)
    bucket: bool = False  # its checkpoints are in object storage (bucket.py)

    @property
    def serves(self):
        return "ps" in self.roles

    @property
    def shares(self):
        """What a batch is cut into, with servers and without Synchronous: not for workers that are spare."""
        return self.roles["worker"] - self.strategy.get("backupWorkers", 0)

    def suffers(self, faults):
        """Names of those that can be done to such a crew."""
        alone = sum(self.roles.values()) == 1
        return [name for name, fault in faults.items() if not (alone and fault.needs_several) and (self.elastic or not fault.needs_elastic)
                and (self.bucket or not fault.needs_bucket)]

    @property
    def epochs_are_exact(self):
        """Whether each example is visited exactly once an epoch."""
        return self.strategy["type"] != "PeerToPeer"

def mirrored(name, workers, devices=1, **options):
    strategy = {"type": "MultiWorkerMirrored"}
    strategy.update(options.pop("strategy", {}))
    return Arrangement(name, strategy, {"worker": workers}, devices=devices, **options)

def servers(name, mode, workers=2, ps=2, roles=None, **options):
    strategy = {"type": "ParameterServer", "mode": mode}
    strategy.update(options.pop("strategy", {}))
    every = {**(roles or {}), "worker": workers, "ps": ps}
    return Arrangement(name, strategy, every, bits=mode == "Synchronous", lockstep=False, width=96, steps=1200, **options)

def elastic_servers(mode, **options):
    return servers(f"ParameterServer, {mode}, elastic 1 to 3", mode, workers=3, elastic=(1, 3), begins=2, **options)

def peers(name="PeerToPeer", **options):
    return Arrangement(name, {"type": "PeerToPeer"}, {"worker": 3}, bits=False,
                       lockstep=False, steps=6000, **options)

ARRANGEMENTS = [
    Arrangement("OneDevice", {"type": "OneDevice"}, {"worker": 1}, steps=6000),
    Arrangement("Mirrored, 2 devices", {"type": "Mirrored"}, {"worker": 1}, devices=2, steps=6000),
    Arrangement("CentralStorage, 2 devices", {"type": "CentralStorage"}, {"worker": 1}, devices=2, steps=6000),
    mirrored("MultiWorkerMirrored, Auto, 3", 3),
    mirrored("MultiWorkerMirrored, Auto, 4", 4, steps=2000),
    mirrored("MultiWorkerMirrored, Auto, 3 on 3 nodes", 3, nodes=3),
    mirrored("MultiWorkerMirrored, Auto, 3 on 3 nodes, TLS", 3, nodes=3, encrypted=True),
    mirrored("MultiWorkerMirrored, 2 x 2 devices", 2, devices=2),
    mirrored("MultiWorkerMirrored, Ring, 3", 3, strategy={"collective": "Ring"}, training={"determinism": "Run"}),
    mirrored("MultiWorkerMirrored, Hierarchical, 4 on 2 nodes", 4, strategy={"collective": "Hierarchical"}, nodes=2, steps=2000),
    mirrored("MultiWorkerMirrored, ReduceToOne, 3", 3, strategy={"collective": "ReduceToOne"}),
    mirrored("MultiWorkerMirrored, local steps of 10", 3, strategy={"localSteps": 10}, unit=10, steps=6000),
    mirrored("MultiWorkerMirrored, elastic 1 to 3", 3, elastic=(1, 3), begins=2),
    mirrored("MultiWorkerMirrored, sharded optimizer", 3, strategy={"shardedOptimizer": True}, mirrored=True),
    mirrored("MultiWorkerMirrored, a program, 2", 2, program=True, steps=1000),
    mirrored("MultiWorkerMirrored, a program, 3 on 3 nodes", 3, nodes=3, program=True, steps=1000),
    Arrangement("Pipeline, 2 devices", {"type": "Pipeline", "stages": 2}, {"worker": 1}, devices=2),
    Arrangement("Pipeline, 2 pods", {"type": "Pipeline", "stages": 2}, {"worker": 2}, alone=2, steps=1200),
    Arrangement("Pipeline, 2 pods on 2 nodes", {"type": "Pipeline", "stages": 2}, {"worker": 2}, alone=2, steps=1200, nodes=2),
    Arrangement("Pipeline, 2 pods x 2", {"type": "Pipeline", "stages": 2, "microBatches": 4}, {"worker": 4}, alone=2,
                steps=1500),
    servers("ParameterServer, Async", "Async"),
    servers("ParameterServer, Async, on 3 nodes", "Async", nodes=3),
    servers("ParameterServer, Async, TLS", "Async", encrypted=True),
    servers("ParameterServer, BoundedStaleness", "BoundedStaleness", strategy={"staleness": 3}),
    servers("ParameterServer, BoundedStaleness, 1 backup", "BoundedStaleness", workers=3,
            strategy={"staleness": 3, "backupWorkers": 1}),
    servers("ParameterServer, Synchronous", "Synchronous", training={"logicalShards": 4}),
    servers("ParameterServer, Synchronous, on 2 nodes", "Synchronous", training={"logicalShards": 4}, nodes=2),
    servers("ParameterServer, Synchronous, 1 backup", "Synchronous", workers=3, roles={"chief": 1, "evaluator": 1},
            strategy={"backupWorkers": 1}, training={"logicalShards": 4}),
    elastic_servers("Async"),
    elastic_servers("Synchronous", training={"logicalShards": 6}),
    peers(),
    peers("PeerToPeer, on 3 nodes", nodes=3),
    peers("PeerToPeer, elastic 1 to 3", elastic=(1, 3), begins=2),
    Arrangement("OneDevice, a bucket", {"type": "OneDevice"}, {"worker": 1}, steps=6000, bucket=True),
    mirrored("MultiWorkerMirrored, Auto, 3, a bucket", 3, bucket=True),
    mirrored("MultiWorkerMirrored, sharded optimizer, a bucket", 3, strategy={"shardedOptimizer": True}, mirrored=True, bucket=True),
    servers("ParameterServer, Synchronous, a bucket", "Synchronous", training={"logicalShards": 4}, bucket=True),
]

def document(arrangement):
    """The job document, but for the crew's addresses."""
    training = {"steps": arrangement.steps, "batchSize": BATCH, "seed": 7,
                "optimizer": {"type": "AdamW", "learningRate": "2e-4"}}
    if arrangement.strategy["type"] != "Pipeline":
        training["logicalShards"] = 12
    training.update(arrangement.training)
    job = {
        "name": "chaos", "namespace": "default", "strategy": arrangement.strategy,
        "workers": {"replicas": arrangement.begins or arrangement.roles["worker"]}, "devices": {"count": arrangement.devices},
        "model": {"program": {"storage": "runs", "path": "program"}} if arrangement.program else {"preset": "mlp", "width": arrangement.width},
        "data": {"format": "Synthetic", "examples": EXAMPLES + 50, "validation": {"last": 50}},
        "training": training,
        "evaluation": {"everySteps": 200},
        "storage": [{"name": "runs"}],
        "checkpoint": {"storage": "runs", "path": "checkpoints", "everySteps": SAVE_EVERY, "keep": 2},
        "export": {"storage": "runs", "path": "model.safetensors"},
    }
    roles = [{"name": role, "count": arrangement.begins or count if role == "worker" else count}
             for role, count in arrangement.roles.items()]
    if arrangement.elastic:
        least, most = arrangement.elastic
        for role in roles:
            if role["name"] == "worker":
                role.update({"minCount": least, "maxCount": most})
    if sum(arrangement.roles.values()) > 1:
        job["crew"] = {"roles": roles, "hostPattern": "{role}-{index}", "port": 2222}
    return job
