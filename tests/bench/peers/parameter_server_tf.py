# SPDX-License-Identifier: Apache-2.0
"""ParameterServerStrategy with two workers of one thread and one ps, an MLP with 64 examples a worker and step, taking turns
(turns.py): parameter_server_tf.py STEPS_A_CALL"""
import json
import os
import subprocess
import sys

import turns

BATCH = 64
CALLS = 60  # scheduled before the chief waits for them


def serve(resolver):
    import tensorflow as tf

    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc",
                         start=True).join()


def lead(resolver, steps):
    import tensorflow as tf

    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        variables = [tf.Variable(tf.random.stateless_normal(shape, [1, 2]) / 28) for shape in ([784, 512], [512], [512, 10], [10])]

    @tf.function
    def train():
        inputs, labels = tf.zeros([BATCH, 784]) + 0.5, tf.zeros([BATCH], tf.int32)
        for _ in range(steps):
            with tf.GradientTape() as tape:
                logits = tf.nn.relu(inputs @ variables[0] + variables[1]) @ variables[2] + variables[3]
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                variable.assign_sub(0.05 * gradient)

    calls = max(2, CALLS // steps)

    def step():
        for _ in range(calls):
            coordinator.schedule(train)
        coordinator.join()

    turns.serve(step, calls * steps * BATCH, warm_up=2)


def main():
    members = {"worker": 2, "ps": 1, "chief": 1}
    names = [(role, index) for role, count in members.items() for index in range(count)]
    addresses = dict(zip(names, turns.free_addresses(len(names))))
    cluster = {role: [addresses[role, index] for index in range(count)] for role, count in members.items()}
    os.environ.update(GRPC_FAIL_FAST="use_caller", CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
    for role, index in names[:-1]:
        environment = {**os.environ, "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}
        subprocess.Popen([sys.executable, __file__, sys.argv[1]], env=environment, stdin=subprocess.DEVNULL)
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})


if "TF_CONFIG" not in os.environ:
    main()
import tensorflow  # noqa: E402

tensorflow.config.threading.set_intra_op_parallelism_threads(1)
task = tensorflow.distribute.cluster_resolver.TFConfigClusterResolver()
lead(task, int(sys.argv[1])) if task.task_type == "chief" else serve(task)
