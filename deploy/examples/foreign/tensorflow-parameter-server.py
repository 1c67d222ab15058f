# SPDX-License-Identifier: Apache-2.0
"""TensorFlow ParameterServerStrategy: learns to tell which of ten prototypes a noisy vector comes from.

TF_CONFIG comes from the operator. The chief hands steps to the workers; the variables live on the ps. When a worker is
lost, its successor is taken in and nothing is lost; when chief or ps is lost, the operator starts the whole crew over, and
the chief goes on from its last checkpoint.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["GRPC_FAIL_FAST"] = "use_caller"  # the chief waits for those that are not there yet
import tensorflow as tf

STEPS = int(os.environ.get("STEPS", 300))
SAVE_EVERY = 20
BATCH = 64  # of each step


def serve(resolver):
    """What workers and ps do: what the chief says, until they are told to end."""
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
                                  protocol="grpc", start=True)
    print(f"{resolver.task_type} {resolver.task_id} serves", flush=True)
    server.join()


class Network(tf.Module):
    def __init__(self):
        self.hidden = tf.Variable(tf.random.stateless_normal([64, 128], [1, 2]) / 8)
        self.bias = tf.Variable(tf.zeros([128]))
        self.output = tf.Variable(tf.random.stateless_normal([128, 10], [1, 3]) / 11)

    def __call__(self, inputs):
        return tf.nn.relu(inputs @ self.hidden + self.bias) @ self.output


def lead(resolver):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    prototypes = tf.random.stateless_normal([10, 64], [1, 1]).numpy()
    with strategy.scope():
        network = Network()
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(network=network, step=step),
                                         os.environ["COXSWAIN_CHECKPOINT_DIR"], 2)
    manager.restore_or_initialize()
    print(f"chief, attempt {os.environ['COXSWAIN_ATTEMPT']}: begins after step {int(step)}", flush=True)

    @tf.function
    def train(number):
        seed = tf.stack([number, 0])
        labels = tf.random.stateless_uniform([BATCH], seed, maxval=10, dtype=tf.int32)
        inputs = tf.gather(tf.constant(prototypes), labels) + 3 * tf.random.stateless_normal([BATCH, 64], seed)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, network(inputs)))
        for variable, gradient in zip(network.trainable_variables, tape.gradient(loss, network.trainable_variables)):
            variable.assign_sub(0.05 * gradient)
        return loss

    while int(step) < STEPS:
        losses = [coordinator.schedule(train, args=(int(step) + i,)) for i in range(SAVE_EVERY)]
        coordinator.join()
        step.assign_add(SAVE_EVERY)
        manager.save()
        print(f"step {int(step)}/{STEPS} loss {float(losses[-1].fetch()):.4f}", flush=True)
    print("done", flush=True)


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    print("task", json.loads(os.environ["TF_CONFIG"])["task"], flush=True)
    lead(resolver) if resolver.task_type == "chief" else serve(resolver)


main()
