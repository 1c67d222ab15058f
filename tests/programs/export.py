# SPDX-License-Identifier: Apache-2.0
"""Exports the programs that tests/programs/check trains, and says what JAX itself makes of one of them.

    export.py mlp FOLDER BATCH      a JAX function, 28x28 digits
    export.py wide FOLDER BATCH     the same, of many parameters at odd places
    export.py seeded FOLDER BATCH   the same, which draws its first weights from the job's seed
    export.py start WEIGHTS SEED    how far these weights are from those that JAX itself draws with this seed
    export.py keras FOLDER BATCH    a Keras model with convolutions, batch normalisation and dropout
    export.py towers FOLDER BATCH   a recommender of three inputs: a user, an item and a price
    export.py towers-data           the arrays that it learns from, users.npy, items.npy, prices.npy and bought.npy, and as
                                    offers.tfrecord, and files that it cannot learn from
    export.py letters FOLDER BATCH  a model that guesses the next of eight bytes of text
    export.py flax FOLDER BATCH     the same by a transformer of Flax with dropout
    export.py llama FOLDER BATCH    and by a Llama of Hugging Face's transformers
    export.py padded FOLDER BATCH   the same with targets that do not count, by a Keras model
    export.py padded-data           the texts that it learns from, texts.npy and next.npy, in which -100 stands for such targets
    export.py padded-losses STEPS RATE   the losses of full-batch gradient descent on these texts, by Keras' own loss
    export.py letters-data          a text as poem.txt, poem.jsonl and poem.bin (tokens)
    export.py folder IMAGES LABELS  these digits as PNG files in folders/, a folder for each class, and in that order as sorted-images and
                                    sorted-labels
    export.py predict WEIGHTS IMAGES OUTPUTS   what that Keras model predicts for the last images with trained weights, against the
                                    worker's outputs; prints the largest difference
    export.py losses IMAGES LABELS STEPS RATE   the losses of full-batch gradient descent on the same function, by JAX alone
    export.py torch FOLDER BATCH    a module of PyTorch with convolutions
    export.py torch-trained IMAGES LABELS STEPS RATE WEIGHTS
                                    how far the worker's weights are from those of PyTorch's own full-batch gradient descent
    export.py load NAME WEIGHTS IMAGES LABELS   how many of the last 100 examples the model itself has right with the worker's
                                    weights, in per cent
    export.py oversized FOLDER BATCH   the JAX function for TPUs, with an evaluation of 8 million examples at a time, which no TPU of
                                    16 GiB can hold

PLATFORMS in the environment says for what mlp, keras and towers are exported ("tpu"; default: "cpu").
"""
import json
import os
import pathlib
import struct
import sys
import zlib

import jax
import jax.numpy as jnp
import numpy as np

import coxswain_train

WIDTH, CLASSES = 32, 10
PLATFORMS = os.environ.get("PLATFORMS", "cpu").split(",")


def first_parameters(width=WIDTH):
    random = np.random.default_rng(1)

    def matrix(rows, columns):
        return jnp.asarray(random.normal(0, rows**-0.5, (rows, columns)), jnp.float32)

    return {
        "hidden": {"kernel": matrix(784, width), "bias": jnp.zeros(width, jnp.float32)},
        "output": {"kernel": matrix(width, CLASSES), "bias": jnp.zeros(CLASSES, jnp.float32)},
    }


def logits_of(parameters, images):
    hidden, output = parameters["hidden"], parameters["output"]
    flat = images.reshape(images.shape[0], -1)
    return jax.nn.relu(flat @ hidden["kernel"] + hidden["bias"]) @ output["kernel"] + output["bias"]


def losses_of(parameters, state, images, classes, key, training):
    logits = logits_of(parameters, images)
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), classes[:, None], 1)[:, 0]
    return losses, (logits.argmax(1) == classes).astype(jnp.float32), state


def most_probable(parameters, state, images):
    """Not scores: the classes, the most probable first."""
    return jnp.argsort(-logits_of(parameters, images), axis=1).astype(jnp.int32)


def example(batch):
    random = np.random.default_rng(2)
    images = random.normal(size=(batch, 28, 28, 1)).astype(np.float32)
    return images, random.integers(0, CLASSES, batch).astype(np.int32)


def drawn(key):
    keys, first = jax.random.split(key), first_parameters()
    kernels = {name: jax.random.normal(key, first[name]["kernel"].shape) * 0.05 for key, name in zip(keys, first)}
    return {name: {"kernel": kernel, "bias": first[name]["bias"]} for name, kernel in kernels.items()}


def print_start(weights, seed):
    wanted = jax.tree.leaves(drawn(jax.random.key(seed)))
    print(max(float(jnp.abs(a - b).max()) for a, b in zip(jax.tree.leaves(coxswain_train.load(weights, first_parameters())), wanted)))


def export_mlp(folder, batch, width=WIDTH, initialise=None):
    images, classes = example(batch)
    coxswain_train.export(
        folder,
        losses_of,
        first_parameters(width),
        images,
        classes,
        batch=batch,
        classes=CLASSES,
        predict=most_probable,
        initialise=initialise,
        platforms=PLATFORMS,
    )


def export_oversized(folder, batch):
    """What is only compiled need not be run first, so that this process needs no such memory."""
    export_mlp(folder, batch)

    def evaluate(kernel, images):
        return (images @ kernel).sum(), images.max()

    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((784, CLASSES), (8_000_000, 784))]
    exported = jax.export.export(jax.jit(evaluate), platforms=["tpu"])(*shapes)
    (pathlib.Path(folder) / "evaluate.mlirbc").write_bytes(exported.mlir_module_serialized)


def keras_model():
    import keras

    keras.utils.set_random_seed(3)
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(8, 3, strides=2),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.25),
            keras.layers.Dense(CLASSES),
        ]
    )


def export_keras(folder, batch):
    import keras

    model = keras_model()
    images, classes = example(batch)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    coxswain_train.export(folder, model, loss, images, classes, batch=batch, platforms=PLATFORMS)


USERS, ITEMS = 40, 30


def towers_of(parameters, inputs):
    users, items = parameters["users"][inputs["user"]], parameters["items"][inputs["item"]]
    return (users * items).sum(1) + inputs["price"] @ parameters["price"]


def towers_losses(parameters, state, inputs, bought, key, training):
    scores = jnp.stack([jnp.zeros(len(bought)), towers_of(parameters, inputs)], 1)
    losses = -jnp.take_along_axis(jax.nn.log_softmax(scores), bought[:, None], 1)[:, 0]
    return losses, scores.argmax(1) == bought, state


def towers_predict(parameters, state, inputs):
    return jnp.stack([jnp.zeros(len(inputs["user"])), towers_of(parameters, inputs)], 1)


def towers_data(count):
    random = np.random.default_rng(5)
    tastes, kinds = random.integers(0, 2, USERS), random.integers(0, 2, ITEMS)
    users, items = random.integers(0, USERS, count), random.integers(0, ITEMS, count)
    prices = random.normal(size=(count, 2)).astype(np.float32)
    bought = (2.0 * (tastes[users] == kinds[items]) - 1 - prices[:, 0] > 0).astype(np.int32)
    return {"user": users.astype(np.int32), "item": items.astype(np.int32), "price": prices}, bought


def towers_parameters():
    random = np.random.default_rng(6)
    tables = {name: jnp.asarray(random.normal(0, 0.5, (rows, 4)), jnp.float32) for name, rows in (("users", USERS), ("items", ITEMS))}
    return {**tables, "price": jnp.zeros(2, jnp.float32)}


def export_towers(folder, batch):
    inputs, bought = towers_data(batch)
    sizes = {"user": USERS, "item": ITEMS}
    coxswain_train.export(
        folder,
        towers_losses,
        towers_parameters(),
        inputs,
        bought,
        batch=batch,
        classes=2,
        vocabularies=sizes,
        predict=towers_predict,
        scores="logits",
        platforms=PLATFORMS,
    )


def write_towers_data():
    inputs, bought = towers_data(700)
    # Other types of the same numbers, as NumPy makes them.
    np.save("users.npy", inputs["user"].astype(np.int64))
    np.save("items.npy", inputs["item"].astype(np.uint8))
    np.save("prices.npy", inputs["price"])
    np.save("bought.npy", bought)
    write_records("offers.tfrecord", {**inputs, "bought": bought})
    np.save("fewer.npy", inputs["item"][:699])
    np.save("doubles.npy", inputs["price"].astype(np.float64))
    np.save("halves.npy", inputs["price"].astype(np.float16))
    np.save("wider.npy", np.zeros((700, 3), np.float32))
    strangers = inputs["user"].copy()
    strangers[3] = USERS
    np.save("strangers.npy", strangers)


LETTERS = 8


def letters_losses(parameters, state, texts, targets, key, training):
    logits = parameters["table"][texts] @ parameters["output"]
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)[..., 0]
    return losses, logits.argmax(-1) == targets, state


def export_letters(folder, batch):
    random = np.random.default_rng(8)
    parameters = {name: jnp.asarray(random.normal(0, 0.3, shape), jnp.float32) for name, shape in (("table", (256, 8)), ("output", (8, 256)))}
    coxswain_train.export(
        folder, letters_losses, parameters, *texts(batch), batch=batch, classes=256, vocabularies={"input": 256}, platforms=PLATFORMS
    )


PADDED, PADDING = 200, -100


def padded_texts():
    """Texts of 1 to 8 letters: what is behind their end does not count. The first shards have the long ones."""
    inputs, targets = texts(PADDED)
    ends = np.sort(np.random.default_rng(9).integers(1, LETTERS + 1, PADDED))[::-1]
    return inputs, np.where(np.arange(LETTERS) < ends[:, None], targets, PADDING).astype(np.int32)


def padded_model():
    import keras

    keras.utils.set_random_seed(5)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=PADDING)
    layers = [keras.Input((LETTERS,), dtype="int32"), keras.layers.Embedding(256, 8), keras.layers.Dense(256, name="out")]
    return keras.Sequential(layers), loss


def export_padded(folder, batch):
    inputs, targets = padded_texts()
    model, loss = padded_model()
    coxswain_train.export(folder, model, loss, inputs[::9], targets[::9], batch=batch, vocabularies={"input": 256})


def print_padded_losses(steps, rate):
    inputs, targets = padded_texts()
    model, loss = padded_model()
    values = [variable.value for variable in model.trainable_variables]

    @jax.jit
    def step(values):
        loss_of = lambda values: loss(targets, model.stateless_call(values, [], inputs)[0])
        value, gradients = jax.value_and_grad(loss_of)(values)
        return value, [value - rate * gradient for value, gradient in zip(values, gradients)]

    for _ in range(steps):
        value, values = step(values)
        print(f"{value:.4f}")


def texts(batch):
    return tuple(np.random.default_rng(8).integers(0, 256, (2, batch, LETTERS), np.int32))


def export_flax(folder, batch):
    from flax import nnx

    width = 16

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.norms = nnx.List([nnx.LayerNorm(width, rngs=rngs) for _ in range(2)])
            self.attention = nnx.MultiHeadAttention(2, width, dropout_rate=0.1, decode=False, rngs=rngs)
            self.up, self.down = nnx.Linear(width, 2 * width, rngs=rngs), nnx.Linear(2 * width, width, rngs=rngs)

        def __call__(self, x, rngs):
            x = x + self.attention(self.norms[0](x), mask=nnx.make_causal_mask(x[..., 0]), rngs=rngs)
            return x + self.down(nnx.gelu(self.up(self.norms[1](x))))

    class Transformer(nnx.Module):
        def __init__(self, rngs):
            self.tokens, self.positions = nnx.Embed(256, width, rngs=rngs), nnx.Param(jnp.zeros((LETTERS, width)))
            self.blocks = nnx.List([Block(rngs) for _ in range(2)])
            self.norm, self.head = nnx.LayerNorm(width, rngs=rngs), nnx.Linear(width, 256, rngs=rngs)

        def __call__(self, tokens, rngs):
            x = self.tokens(tokens) + self.positions[...]
            for block in self.blocks:
                x = block(x, rngs)
            return self.head(self.norm(x))

    structure, parameters, generators = nnx.split(Transformer(nnx.Rngs(0)), nnx.Param, ...)

    def losses(parameters, state, inputs, targets, key, training):
        model = nnx.merge(structure, parameters, generators)
        if training:
            model.train()
        else:
            model.eval()
        logits = model(inputs, nnx.Rngs(dropout=key) if training else None)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)[..., 0], logits.argmax(-1) == targets, state

    coxswain_train.export(folder, losses, parameters, *texts(batch), batch=batch, classes=256, vocabularies={"input": 256}, platforms=PLATFORMS)


def export_llama(folder, batch):
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    module = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=256, **sizes))

    def losses(logits, targets):
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").reshape(targets.shape)

    coxswain_train.export(folder, module, losses, *texts(batch), batch=batch, vocabularies={"input": 256})


def write_letters_data():
    lines = [f"line {number} of a poem about {number % 7} ships" for number in range(300)]
    text = "".join(line + "\n" for line in lines).encode()
    pathlib.Path("poem.txt").write_bytes(text)
    pathlib.Path("poem.jsonl").write_text("".join(json.dumps({"number": i, "text": line}) + "\n" for i, line in enumerate(lines)))
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, len(text)
    pathlib.Path("poem.bin").write_bytes(header.tobytes() + np.frombuffer(text, np.uint8).astype("<u2").tobytes())


def png(pixels):
    """A grey image."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_folder(images_path, labels_path):
    images, labels = read_idx(images_path, 16).reshape(-1, 28, 28), read_idx(labels_path, 8)
    order = np.argsort(labels, kind="stable")
    for number in order:
        path = pathlib.Path("folders", str(labels[number]), f"{number:05}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(images[number]))
    for name, values, magic in (("sorted-images", images[order], 0x803), ("sorted-labels", labels[order], 0x801)):
        pathlib.Path(name).write_bytes(np.array([magic, *values.shape], ">u4").tobytes() + values.tobytes())


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number, data):
    """Of a message of protobuf: bytes with their length."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(name, values):
    if values.dtype == np.float32:
        kind, packed = 2, values.tobytes()
    else:
        kind, packed = 3, b"".join(varint(int(value)) for value in values)
    return field(1, field(1, name.encode()) + field(2, field(kind, field(1, packed))))


def masked_crc(data):
    """CRC-32C, as TFRecord files have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def write_records(path, columns):
    """A tf.train.Example for each example."""
    with open(path, "wb") as file:
        for number in range(len(next(iter(columns.values())))):
            example = field(1, b"".join(feature(name, np.atleast_1d(column[number])) for name, column in columns.items()))
            length = struct.pack("<Q", len(example))
            file.write(length + masked_crc(length) + example + masked_crc(example))


def torch_module():
    import torch

    torch.manual_seed(4)
    convolution = torch.nn.Conv2d(1, 8, 3, stride=2)
    return torch.nn.Sequential(
        convolution, torch.nn.GroupNorm(2, 8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 13 * 13, CLASSES)
    )


def export_torch(folder, batch):
    import torch

    images, classes = example(batch)
    loss = torch.nn.CrossEntropyLoss()
    coxswain_train.export(folder, torch_module(), loss, images, classes, batch=batch, channels_first=True)


def print_distance(images_path, labels_path, steps, rate, weights):
    """The largest difference of a tensor, as a part of its largest value."""
    import torch

    images, classes = digits(images_path, labels_path)
    inputs, targets = torch.from_numpy(np.moveaxis(images, -1, 1).copy()), torch.from_numpy(classes).long()
    module, trained = torch_module(), torch_module()
    coxswain_train.load(weights, trained)
    optimizer = torch.optim.SGD(module.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(inputs), targets).backward()
        optimizer.step()
    with torch.no_grad():
        pairs = zip(module.parameters(), trained.parameters(), strict=True)
        print(f"{max(float((ours - theirs).abs().max() / theirs.abs().max()) for theirs, ours in pairs):.1e}")


def print_accuracy(name, weights, images_path, labels_path):
    images, classes = digits(images_path, labels_path)
    if name == "keras":
        model = keras_model()
        coxswain_train.load(weights, model)
        output = np.asarray(model(images, training=False))
    elif name == "torch":
        module = torch_module()
        coxswain_train.load(weights, module)
        import torch

        output = module(torch.from_numpy(np.moveaxis(images, -1, 1).copy())).detach().numpy()
    else:
        parameters = coxswain_train.load(weights, first_parameters())
        hits = losses_of(parameters, {}, jnp.asarray(images), jnp.asarray(classes), None, False)[1]
        output = np.eye(2)[np.asarray(hits, np.int32)]
        classes = np.ones_like(classes)
    right = output.argmax(-1)[-100:] == classes[-100:]
    print(f"{100 * right.mean():.2f}")


def digits(images_path, labels_path):
    return read_images(images_path), read_idx(labels_path, 8).astype(np.int32)


def read_idx(path, header):
    with open(path, "rb") as file:
        return np.frombuffer(file.read()[header:], np.uint8)


def print_difference(weights_path, images_path, outputs_path):
    model, outputs = keras_model(), np.load(outputs_path)
    coxswain_train.load(weights_path, model)
    wanted = model.predict(read_images(images_path)[-len(outputs) :], verbose=0)
    assert outputs.shape == wanted.shape and outputs.dtype == wanted.dtype
    print(np.abs(outputs - wanted).max() / np.abs(wanted).max())


def read_images(path):
    """As the worker scales them: to 0..1."""
    return read_idx(path, 16).reshape(-1, 28, 28, 1).astype(np.float32) / 255


def print_losses(images_path, labels_path, steps, rate):
    images, classes = digits(images_path, labels_path)
    parameters = first_parameters()

    @jax.jit
    def step(parameters):
        def mean(parameters):
            return losses_of(parameters, {}, jnp.asarray(images), jnp.asarray(classes), None, True)[0].mean()

        loss, gradients = jax.value_and_grad(mean)(parameters)
        return loss, jax.tree.map(lambda value, gradient: value - rate * gradient, parameters, gradients)

    for _ in range(steps):
        loss, parameters = step(parameters)
        print(f"{loss:.4f}")


if __name__ == "__main__":
    if sys.argv[1] == "mlp":
        export_mlp(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "seeded":
        export_mlp(sys.argv[2], int(sys.argv[3]), initialise=drawn)
    elif sys.argv[1] == "start":
        print_start(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "towers":
        export_towers(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "towers-data":
        write_towers_data()
    elif sys.argv[1] == "letters":
        export_letters(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "flax":
        export_flax(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "llama":
        export_llama(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "padded":
        export_padded(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "padded-data":
        for name, values in zip(("texts.npy", "next.npy"), padded_texts()):
            np.save(name, values)
    elif sys.argv[1] == "padded-losses":
        print_padded_losses(int(sys.argv[2]), float(sys.argv[3]))
    elif sys.argv[1] == "letters-data":
        write_letters_data()
    elif sys.argv[1] == "folder":
        write_folder(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "wide":
        export_mlp(sys.argv[2], int(sys.argv[3]), 16383)
    elif sys.argv[1] == "oversized":
        export_oversized(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "keras":
        export_keras(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "torch":
        export_torch(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "torch-trained":
        print_distance(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]), sys.argv[6])
    elif sys.argv[1] == "load":
        print_accuracy(*sys.argv[2:])
    elif sys.argv[1] == "predict":
        print_difference(*sys.argv[2:5])
    else:
        print_losses(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
