# SPDX-License-Identifier: Apache-2.0
"""TensorFlow MultiWorkerMirroredStrategy: learns to tell which of ten prototypes a noisy vector comes from.

TF_CONFIG comes from the operator. When a worker is lost, the operator starts the whole crew over, and it goes on from the
checkpoint that worker 0 wrote last.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf

STEPS = int(os.environ.get("STEPS", 300))
SAVE_EVERY = 20
BATCH = 64  # of each worker


def examples(step, index, prototypes):
    """The same ones for the same step and worker, whatever happened before."""
    seed = tf.stack([tf.cast(step, tf.int32), tf.cast(index, tf.int32)])
    labels = tf.random.stateless_uniform([BATCH], seed, maxval=10, dtype=tf.int32)
    return tf.gather(prototypes, labels) + 3 * tf.random.stateless_normal([BATCH, 64], seed), labels


def make_model():
    return tf.keras.Sequential([
        tf.keras.layers.Input([64]), tf.keras.layers.Dense(128, "relu", kernel_initializer=tf.keras.initializers.GlorotUniform(1)),
        tf.keras.layers.Dense(10, kernel_initializer=tf.keras.initializers.GlorotUniform(2))])


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    prototypes = tf.random.stateless_normal([10, 64], [1, 1])
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
        optimizer.build(model.trainable_variables)
        step = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    # Everybody takes part in a save, but only worker 0's counts.
    folder = os.path.join(os.environ["COXSWAIN_CHECKPOINT_DIR"], "" if task["index"] == 0 else f"worker-{task['index']}")
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, optimizer=optimizer, step=step), folder, 2)
    latest = tf.train.latest_checkpoint(os.environ["COXSWAIN_CHECKPOINT_DIR"])
    if latest:
        manager.checkpoint.restore(latest).assert_existing_objects_matched()
    print(f"worker {task['index']}, attempt {os.environ['COXSWAIN_ATTEMPT']}: begins after step {int(step.numpy())}", flush=True)

    @tf.function
    def train(number):
        def on_replica():
            inputs, labels = examples(number, task["index"], prototypes)
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs))
                loss = tf.reduce_mean(losses) / strategy.num_replicas_in_sync
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            return loss
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(on_replica), axis=None)

    for number in range(int(step.numpy()), STEPS):
        loss = train(tf.constant(number))
        step.assign(number + 1)
        if (number + 1) % SAVE_EVERY == 0:
            manager.save()
            print(f"step {number + 1}/{STEPS} loss {float(loss):.4f}", flush=True)
    print("done", flush=True)


main()
