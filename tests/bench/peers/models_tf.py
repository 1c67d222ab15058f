# SPDX-License-Identifier: Apache-2.0
"""models.py's work in TensorFlow: the same models, batches and optimizers; a step is one tf.function."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf  # noqa: E402

from works import GPT_6X384, GPT_BYTES, RESNET20, WORKS  # noqa: E402

layers = tf.keras.layers


class Block(layers.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.width = heads, width
        self.norm1, self.norm2 = layers.LayerNormalization(epsilon=1e-5), layers.LayerNormalization(epsilon=1e-5)
        self.qkv, self.proj = layers.Dense(3 * width), layers.Dense(width)
        self.up, self.down = layers.Dense(4 * width), layers.Dense(width)

    def call(self, x):
        b, t, size = x.shape[0], x.shape[1], self.width // self.heads
        q, k, v = (tf.transpose(tf.reshape(part, [b, t, self.heads, size]), [0, 2, 1, 3])
                   for part in tf.split(self.qkv(self.norm1(x)), 3, -1))
        mask = tf.linalg.band_part(tf.ones([t, t]), -1, 0)
        scores = tf.matmul(q, k, transpose_b=True) * size ** -0.5 - 1e9 * (1 - mask)
        attended = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3]), [b, t, self.width])
        x = x + self.proj(attended)
        return x + self.down(tf.nn.gelu(self.up(self.norm2(x)), approximate=True))


class Gpt(tf.keras.Model):
    def __init__(self, depth, width, heads, context):
        super().__init__()
        self.token, self.position = layers.Embedding(256, width), layers.Embedding(context, width)
        self.blocks = [Block(width, heads) for _ in range(depth)]
        self.norm, self.head = layers.LayerNormalization(epsilon=1e-5), layers.Dense(256, use_bias=False)

    def call(self, tokens, training=False):
        x = self.token(tokens) + self.position(tf.range(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def mlp():
    return tf.keras.Sequential([layers.Flatten(), layers.Dense(512, "relu"), layers.Dense(10)])


def lenet():
    return tf.keras.Sequential([layers.Conv2D(32, 3, activation="relu"), layers.MaxPool2D(), layers.Conv2D(64, 3, activation="relu"),
                                layers.MaxPool2D(), layers.Flatten(), layers.Dense(128, "relu"), layers.Dense(10)])


class Residual(layers.Layer):
    def __init__(self, before, filters, stride):
        super().__init__()
        self.stride, self.wider = stride, filters - before
        self.branch = [layers.Conv2D(filters, 3, stride, "same", use_bias=False), layers.BatchNormalization(epsilon=1e-5), layers.ReLU(),
                       layers.Conv2D(filters, 3, 1, "same", use_bias=False), layers.BatchNormalization(epsilon=1e-5)]

    def call(self, x, training=False):
        past = tf.pad(x[:, :: self.stride, :: self.stride], [[0, 0], [0, 0], [0, 0], [0, self.wider]]) if self.wider else x
        for layer in self.branch:
            x = layer(x, training=training) if isinstance(layer, layers.BatchNormalization) else layer(x)
        return tf.nn.relu(past + x)


def resnet20():
    blocks = [Residual(*block) for block in RESNET20]
    return tf.keras.Sequential([layers.Conv2D(16, 3, 1, "same", use_bias=False), layers.BatchNormalization(epsilon=1e-5), layers.ReLU(),
                                *blocks, layers.GlobalAveragePooling2D(), layers.Dense(10)])


def images(examples):
    return tf.random.uniform([examples, 28, 28, 1]), tf.random.uniform([examples], maxval=10, dtype=tf.int32)


def pictures(examples):
    return tf.random.uniform([examples, 32, 32, 3]), tf.random.uniform([examples], maxval=10, dtype=tf.int32)


def tokens(examples):
    return (tf.random.uniform([examples, 256], maxval=256, dtype=tf.int32),
            tf.random.uniform([examples, 256], maxval=256, dtype=tf.int32))


MODELS = {"mlp": mlp, "lenet": lenet, "resnet20": resnet20, "gpt-bytes": lambda: Gpt(**GPT_BYTES), "gpt-6x384": lambda: Gpt(**GPT_6X384)}
OPTIMIZERS = {"sgd": tf.keras.optimizers.SGD, "adamw": lambda rate: tf.keras.optimizers.AdamW(rate, weight_decay=1e-2)}
DATA = {"images": images, "pictures": pictures, "tokens": tokens}


def stepper(work, batch, strategy):
    """A function that trains one step on `batch` examples, under `strategy`, and returns when it is done."""
    inputs, targets = DATA[WORKS[work].data](batch)
    with strategy.scope():
        model, optimizer = MODELS[work](), OPTIMIZERS[WORKS[work].optimizer](WORKS[work].rate)
        model(inputs)
        optimizer.build(model.trainable_variables)

    def on_replica():
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, model(inputs, training=True))
            loss = tf.reduce_mean(losses) / strategy.num_replicas_in_sync
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def train():
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(on_replica), axis=None)

    return lambda: train().numpy()
