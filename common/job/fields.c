/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/fields.h"

#include <string.h>

#include "common/contract/labels.h"
#include "common/job/enum_words.h"
#include "common/job/field_table.h"
#include "common/job/training_job.h"
#include "common/log_pattern.h"
#include "common/nearest_word.h"

#define PATH_MAX_LENGTH 1024
#define COUNT_MAX 1000000000000 /* steps, examples: far above any run, far below 2^53 */
#define PODS_MAX 1000           /* of a role, for any framework; rules.c has what our own worker takes */
#define BATCH_MAX 1048576
#define SIDE_MAX 65536 /* of a layer */
#define IMAGE_PRESETS "mlp", "lenet", "resnet20", "resnet50"
#define TEXT_PRESETS "gpt-bytes", "gpt2-124m", "gpt2-355m", "gpt2-774m", "gpt2-1558m"

/* ---------------------------------------------------------------- strategy and devices */

static const struct field strategy_fields[] = {
    {.name = "type",
     .kind = FIELD_ENUM,
     MEMBER(strategy_spec, type),
     LONE,
     .flags = FIELD_REQUIRED,
     .words = strategy_type_words,
     .description =
         "How the crew shares the work. OneDevice: one worker, one device, the reference for all others. Mirrored: one "
         "worker with a mirror of the model on each of its devices. MultiWorkerMirrored: synchronous data parallelism "
         "across pods; a lost worker pauses the crew and loses nothing. ParameterServer: variables live on the pods "
         "of parameterServers. CentralStorage: variables in host memory, computation on all devices. PeerToPeer: "
         "decentralised and asynchronous. Pipeline: layers on different devices or pods."},
    {.name = "collective",
     .kind = FIELD_ENUM,
     MEMBER(strategy_spec, collective),
     LONE,
     .words = collective_type_words,
     .fallback = "Auto",
     .description =
         "How gradients are summed. Auto takes what suits the devices and the network; Ring passes parts around and "
         "needs training.determinism Run; Hierarchical sums on each machine first; ReduceToOne gathers on one device; "
         "NCCL lets the GPUs of Mirrored and MultiWorkerMirrored send them to each other, in the tree's order or, with "
         "determinism Run, in the library's."},
    {.name = "stages",
     .kind = FIELD_INTEGER,
     MEMBER(strategy_spec, stages),
     LONE,
     RANGE(1, STAGES_MAX),
     .description =
         "Pipeline: into how many stages the layers are cut, each on a device of its own. It must divide workers x "
         "devices.count; the quotient is the number of replicas of each stage. Default: one replica, a stage on every "
         "device."},
    {.name = "microBatches",
     .kind = FIELD_INTEGER,
     MEMBER(strategy_spec, micro_batches),
     LONE,
     RANGE(1, 1024),
     .description =
         "Pipeline: how many pieces each replica's share of a batch passes through the stages in. More of them leave "
         "the devices idle for a smaller part of a step. Each is a logical shard, so that this sets "
         "training.logicalShards. Default: 4 times stages."},
    {.name = "recompute",
     .kind = FIELD_BOOLEAN,
     MEMBER(strategy_spec, recompute),
     LONE,
     .fallback = "false",
     .description =
         "Keep only what enters and leaves a residual block (Pipeline: a stage), and compute the rest again on the way "
         "back. It takes up to a third more time and much less memory for activations."},
    {.name = "mode",
     .kind = FIELD_ENUM,
     MEMBER(strategy_spec, mode),
     LONE,
     .words = parameter_server_mode_words,
     .description =
         "ParameterServer: when an update counts. Async (the default): at once, each worker at its own pace. "
         "BoundedStaleness: as Async, but no worker is more than staleness batches ahead of the slowest. Synchronous: "
         "once all shares of the batch are there, as if one device had computed it."},
    {.name = "staleness",
     .kind = FIELD_INTEGER,
     MEMBER(strategy_spec, staleness),
     LONE,
     RANGE(0, 1000000),
     .description = "BoundedStaleness: how many batches a worker may be ahead of the slowest live one, 4 by default."},
    {.name = "backupWorkers",
     .kind = FIELD_INTEGER,
     MEMBER(strategy_spec, backup_workers),
     LONE,
     RANGE(0, TRAINERS_MAX),
     .description =
         "How many of the workers are spare; the batch is cut for the others. Synchronous: a spare worker computes "
         "the share that the slowest one is late with, and the first result counts. BoundedStaleness: the crew does "
         "not wait for this number of slowest workers, and others compute their late shares. 0 by default."},
    {.name = "shardedOptimizer",
     .kind = FIELD_BOOLEAN,
     MEMBER(strategy_spec, sharded_optimizer),
     LONE,
     .description =
         "MultiWorkerMirrored: each worker keeps and updates the optimizer's slots of its share of the parameters, and "
         "mirrors those of the worker before it (ZeRO-1; Rajbhandari et al., 2020): 2 / workers of their memory, the "
         "same bits, nothing lost with one worker. Workers need one checkpoint storage. False by default."},
    {.name = "localSteps",
     .kind = FIELD_INTEGER,
     MEMBER(strategy_spec, local_steps),
     LONE,
     RANGE(1, 100000),
     .description =
         "MultiWorkerMirrored: each worker takes this number of steps alone on its share of the batches. Then the crew "
         "averages the weights, and an outer optimizer (SGD with Nesterov momentum) moves all replicas to one new "
         "point "
         "(DiLoCo; Douillard et al., 2023). Default: the gradients of every step are summed."},
    {.name = "outerLearningRate",
     .kind = FIELD_DECIMAL,
     MEMBER(strategy_spec, outer_learning_rate),
     LONE,
     BETWEEN(0, 10),
     .description = "With localSteps: how much of the averaged change the outer optimizer takes; 1 with outerMomentum "
                    "0 is plain averaging. Default: 0.7."},
    {.name = "outerMomentum",
     .kind = FIELD_DECIMAL,
     MEMBER(strategy_spec, outer_momentum),
     LONE,
     BETWEEN(0, 1),
     .below = true,
     .description = "With localSteps: Nesterov momentum of the outer optimizer. Default: 0.9."},
};
OBJECT_TYPE(strategy_type, "Strategy", strategy_fields);

static const struct field devices_fields[] = {
    {.name = "type",
     .kind = FIELD_ENUM,
     MEMBER(devices_spec, type),
     LONE,
     .words = device_type_words,
     .fallback = "CPU",
     .description =
         "Type of the devices that compute: CPU, GPU, TPU, or Auto for a GPU if there is one and otherwise the "
         "CPU. XLA runs the model on TPUs, and on other devices if the model is a program or plugin is given."},
    {.name = "count",
     .kind = FIELD_INTEGER,
     MEMBER(devices_spec, count),
     LONE,
     RANGE(1, 64),
     .fallback = "1",
     .description =
         "Devices of each worker; an evaluator has one, servers and a chief of theirs none. For CPU these are "
         "logical devices that share the pod's cores."},
    {.name = "resourceName",
     .kind = FIELD_STRING,
     MEMBER(devices_spec, resource_name),
     LONE,
     .flags = FIELD_MUTABLE_SUSPENDED,
     RANGE(1, 316),
     FORMAT(QUALIFIED_NAME),
     .description =
         "The extended resource by which a pod asks for a device, also one that has "
         "resource claims. Default: nvidia.com/gpu for GPU, google.com/tpu for TPU, and none if the container has "
         "resource claims, which then bring the devices."},
    {.name = "slices",
     .kind = FIELD_INTEGER,
     MEMBER(devices_spec, slices),
     LONE,
     RANGE(1, 256),
     .description =
         "TPU, jax: how many slices of TPUs the workers have, the same number of hosts in each; the first workers have "
         "the first slice. The slices are joined by the data center's network (multislice). Default: one."},
    {.name = "plugin",
     .kind = FIELD_STRING,
     MEMBER(devices_spec, plugin),
     LONE,
     RANGE(2, 1024),
     FORMAT(ABSOLUTE_PATH),
     .description =
         "The PJRT plugin through which XLA runs the model, also one of layers on CPUs and GPUs: the path of a shared "
         "library in the image. Default for programs (model.program) and for TPU: the path in the image's variable "
         "COXSWAIN_PJRT_PLUGIN, otherwise that of libtpu.so for TPU, or of xla_cuda_plugin.so for GPU."},
};
static OBJECT_TYPE(devices_type, "Devices", devices_fields);

/* A file on storage is named the same way everywhere. */
#define FILE_ON_STORAGE(owner, storage_member, storage_words, path_member, path_words)                                 \
    {.name = "storage",                                                                                                \
     .kind = FIELD_STRING,                                                                                             \
     MEMBER(owner, storage_member),                                                                                    \
     LONE,                                                                                                             \
     RANGE(1, NAME_MAX_LENGTH),                                                                                        \
     FORMAT(NAME),                                                                                                     \
     .description = storage_words},                                                                                    \
    {                                                                                                                  \
        .name = "path", .kind = FIELD_STRING, MEMBER(owner, path_member), LONE, .flags = FIELD_REQUIRED,               \
        RANGE(1, PATH_MAX_LENGTH), FORMAT(PATH), .description = path_words                                             \
    }

/* ---------------------------------------------------------------- model */

static const struct field layer_fields[] = {
    {.name = "name",
     .kind = FIELD_STRING,
     MEMBER(layer_spec, name),
     LONE,
     RANGE(1, NAME_MAX_LENGTH),
     FORMAT(WORD),
     .description =
         "Name of the layer, unique in the model; its tensors are called <name>.weight and so on. Default: the type "
         "and the position, such as conv2d0."},
    {.name = "type",
     .kind = FIELD_ENUM,
     MEMBER(layer_spec, type),
     LONE,
     .flags = FIELD_REQUIRED,
     .words = layer_type_words,
     .description = "Type of the layer, which says what it computes."},
    {.name = "inputs",
     .kind = FIELD_STRING_LIST,
     MEMBER(layer_spec, inputs),
     COMPANION(layer_spec, input_count),
     RANGE(1, LAYER_INPUTS_MAX),
     FORMAT(WORD),
     .description = "Names of the layers it reads. Default: the layer before it in the list."},
    {.name = "units",
     .kind = FIELD_INTEGER,
     MEMBER(layer_spec, units),
     LONE,
     ONLY_FOR("Dense", "Embedding"),
     RANGE(1, 1048576),
     .description = "Dense and Embedding: width of the output."},
    {.name = "filters",
     .kind = FIELD_INTEGER,
     MEMBER(layer_spec, filters),
     LONE,
     ONLY_FOR("Conv2D", "Shortcut"),
     RANGE(1, SIDE_MAX),
     .description = "Conv2D and Shortcut: number of output channels."},
    {.name = "kernel",
     .kind = FIELD_INTEGER,
     MEMBER(layer_spec, kernel),
     LONE,
     ONLY_FOR("Conv2D"),
     RANGE(1, 64),
     .description = "Conv2D: side of the square kernel."},
    {.name = "stride",
     .kind = FIELD_INTEGER,
     MEMBER(layer_spec, stride),
     LONE,
     ONLY_FOR("Conv2D", "MaxPool", "AveragePool", "Shortcut"),
     RANGE(1, 64),
     .description =
         "Conv2D, pools and Shortcut: step between positions. Default: 1 for Conv2D and Shortcut, the size for pools."},
    {.name = "padding",
     .kind = FIELD_INTEGER,
     MEMBER(layer_spec, padding),
     LONE,
     ONLY_FOR("Conv2D", "MaxPool", "AveragePool"),
     RANGE(0, 64),
     .fallback = "0",
     .description = "Conv2D and pools: zeros added on each side."},
    {.name = "size",
     .kind = FIELD_INTEGER,
     MEMBER(layer_spec, size),
     LONE,
     ONLY_FOR("MaxPool", "AveragePool", "Embedding"),
     RANGE(1, 16777216),
     .description = "Pools: side of the square window. Embedding: size of the vocabulary."},
    {.name = "heads",
     .kind = FIELD_INTEGER,
     MEMBER(layer_spec, heads),
     LONE,
     ONLY_FOR("Attention"),
     RANGE(1, 1024),
     .description = "Attention: number of heads, which must divide the width of the input."},
    {.name = "bias",
     .kind = FIELD_BOOLEAN,
     MEMBER(layer_spec, bias),
     LONE,
     ONLY_FOR("Dense", "Conv2D"),
     .fallback = "true",
     .description = "Dense and Conv2D: add a learned bias."},
    {.name = "device",
     .kind = FIELD_INTEGER,
     MEMBER(layer_spec, device),
     LONE,
     RANGE(0, STAGES_MAX - 1),
     .description =
         "Pipeline: the stage that the layer belongs to, counted from 0. Default: that of the layer before it in the "
         "list; when no layer names one, stages of equal measured cost."},
    {.name = "devices",
     .kind = FIELD_INTEGER_LIST,
     MEMBER(layer_spec, devices),
     COMPANION(layer_spec, device_count),
     RANGE(2, LAYER_INPUTS_MAX),
     BETWEEN(0, STAGES_MAX - 1),
     .description =
         "Pipeline, Dense: the layer is split over these stages: each has a slice of its units, with their weights, "
         "and "
         "computes those. The slices come together on the stage of `device`. Tensors in checkpoints and exports are "
         "those of the whole layer."},
    {.name = "momentum",
     .kind = FIELD_DECIMAL,
     MEMBER(layer_spec, momentum),
     LONE,
     ONLY_FOR("BatchNorm"),
     BETWEEN(0, 1),
     .above = true,
     .description =
         "BatchNorm: the weight of the newest batch in the running mean and variance, which evaluations use. "
         "Default: 0.1."},
    {.name = "statistics",
     .kind = FIELD_ENUM,
     MEMBER(layer_spec, statistics),
     LONE,
     ONLY_FOR("BatchNorm"),
     .words = batch_statistics_words,
     .fallback = "Shard",
     .description =
         "BatchNorm: over which examples mean and variance are taken in training. Shard: each logical "
         "shard of the batch on its own. Global: the whole batch, whichever workers compute it; for strategies that "
         "compute the batch at once, without accumulation."},
    {.name = "rate",
     .kind = FIELD_DECIMAL,
     MEMBER(layer_spec, rate),
     LONE,
     ONLY_FOR("Dropout"),
     BETWEEN(0, 0.9),
     .description =
         "Dropout: the share of the values that is set to zero in training (Srivastava et al., 2014). Which ones is a "
         "function of seed, step and example, the same for every crew."},
    {.name = "weightsOf",
     .kind = FIELD_STRING,
     MEMBER(layer_spec, weights_of),
     LONE,
     ONLY_FOR("Dense"),
     RANGE(1, NAME_MAX_LENGTH),
     FORMAT(WORD),
     .description =
         "Dense: name of an Embedding whose table of tokens serves as the weight (Press and Wolf, 2017); units is then "
         "the size of its vocabulary."},
};
OBJECT_TYPE(layer_type_type, "Layer", layer_fields, .size = sizeof(struct layer_spec), .kind_field = "type");

static const struct field program_fields[] = {
    FILE_ON_STORAGE(model_spec, program_storage,
                    "Name of the storage that holds the program. Without it the path is absolute and inside the image.",
                    program_path, "Folder of the program: a path in the storage."),
};
OBJECT_TYPE(program_type, "Program", program_fields);

static const struct field model_fields[] = {
    {.name = "program",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct model_spec),
     LONE,
     .type = &program_type,
     .description = "A model of JAX, Flax, Keras or PyTorch that was exported as StableHLO (docs/programs.md). Needs a "
                    "PJRT plugin in the image."},
    {.name = "preset",
     .kind = FIELD_ENUM,
     MEMBER(model_spec, preset),
     LONE,
     .words = preset_words,
     .description =
         "A predefined model: mlp (784-512-10 unless sized otherwise), lenet (for 28 x 28 images), resnet20 (He et "
         "al., "
         "2016, for 32 x 32 x 3), resnet50 (for 224 x 224 x 3), gpt-bytes (a small transformer over bytes), gpt2-124m, "
         "-355m, -774m and -1558m (GPT-2's layers and sizes, output tied to the embedding). One of preset, layers and "
         "program is required."},
    {.name = "inputShape",
     .kind = FIELD_INTEGER_LIST,
     MEMBER(model_spec, input_shape),
     COMPANION(model_spec, input_rank),
     ONLY_FOR(IMAGE_PRESETS, ""),
     RANGE(1, INPUT_RANK_MAX),
     BETWEEN(1, 1048576),
     .description =
         "Shape of one example without the batch: height, width, channels; or the length of a vector or a text. "
         "Presets have their own."},
    {.name = "layers",
     .kind = FIELD_LIST,
     MEMBER(model_spec, layers),
     COMPANION(model_spec, layer_count),
     RANGE(1, 256),
     .type = &layer_type_type,
     .description = "The layers in the order of computation."},
    {.name = "loss",
     .kind = FIELD_ENUM,
     MEMBER(model_spec, loss),
     LONE,
     ONLY_FOR(""),
     .words = loss_words,
     .fallback = "SoftmaxCrossEntropy",
     .description = "The loss that training minimizes, averaged over the examples (for texts: the target tokens)."},
    {.name = "width",
     .kind = FIELD_INTEGER,
     MEMBER(model_spec, width),
     LONE,
     ONLY_FOR("mlp", "resnet20", "resnet50", TEXT_PRESETS),
     RANGE(1, SIDE_MAX),
     .description = "Presets: width of the hidden layers. Default: the preset's own."},
    {.name = "depth",
     .kind = FIELD_INTEGER,
     MEMBER(model_spec, depth),
     LONE,
     ONLY_FOR("mlp", "resnet20", TEXT_PRESETS),
     RANGE(1, 256),
     .description = "Presets: number of hidden layers or transformer blocks. Default: the preset's own."},
    {.name = "heads",
     .kind = FIELD_INTEGER,
     MEMBER(model_spec, heads),
     LONE,
     ONLY_FOR(TEXT_PRESETS),
     RANGE(1, 256),
     .description = "gpt presets: attention heads of each block. Default: the preset's own."},
    {.name = "context",
     .kind = FIELD_INTEGER,
     MEMBER(model_spec, context),
     LONE,
     ONLY_FOR(TEXT_PRESETS),
     RANGE(1, 131072),
     .description = "gpt presets: tokens that the model sees at once. Default: the preset's own."},
    {.name = "vocabulary",
     .kind = FIELD_INTEGER,
     MEMBER(model_spec, vocabulary),
     LONE,
     ONLY_FOR(TEXT_PRESETS),
     RANGE(2, 16777216),
     .description = "gpt presets: number of different tokens. Default: the preset's own."},
    {.name = "classes",
     .kind = FIELD_INTEGER,
     MEMBER(model_spec, classes),
     LONE,
     ONLY_FOR(IMAGE_PRESETS),
     RANGE(2, 1048576),
     .description = "Presets over images: number of classes. Default: the preset's own."},
    {.name = "dropout",
     .kind = FIELD_DECIMAL,
     MEMBER(model_spec, dropout),
     LONE,
     ONLY_FOR(TEXT_PRESETS),
     BETWEEN(0, 0.9),
     .description =
         "gpt presets: share of the values that is set to zero in training behind the embedding and at the end of each "
         "branch."},
    {.name = "statistics",
     .kind = FIELD_ENUM,
     MEMBER(model_spec, statistics),
     LONE,
     ONLY_FOR("resnet20", "resnet50"),
     .words = batch_statistics_words,
     .description =
         "resnet20 and resnet50: over which examples their batch normalisations take mean and variance in training, as "
         "in a BatchNorm layer. Default: Shard."},
};
OBJECT_TYPE(model_type, "Model", model_fields, .kind_field = "preset", .unnamed = "a list of layers");

/* ---------------------------------------------------------------- data */

#define FILE_FIELD(field_name, words_about_it, ...)                                                                    \
    .name = #field_name, .kind = FIELD_STRING, MEMBER(data_files, field_name), LONE, RANGE(1, PATH_MAX_LENGTH),        \
    FORMAT(PATH), .description = words_about_it, ONLY_FOR(__VA_ARGS__)

static const struct field data_input_fields[] = {
    {.name = "name",
     .kind = FIELD_STRING,
     MEMBER(data_input, name),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, DATA_INPUT_NAME_MAX),
     FORMAT(WORD),
     .description = "Name of the input in the model's program.json, such as attention_mask."},
    {.name = "file",
     .kind = FIELD_STRING,
     MEMBER(data_input, file),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, PATH_MAX_LENGTH),
     FORMAT(PATH),
     .description = "The NumPy array with this input of every example, a path in the folder."},
};
static OBJECT_TYPE(data_input_type, "Input file", data_input_fields, .size = sizeof(struct data_input),
                   .map_key = "name");

#define FILE_FIELDS                                                                                                    \
    {FILE_FIELD(                                                                                                       \
        images,                                                                                                        \
        "IDX and NPY: the file of images (may be gzipped), a path in the folder. ImageFolder: the folder with a "      \
        "folder of PNG and JPEG files for each class. Default for ImageFolder: the data's folder.",                    \
        "IDX", "NPY", "ImageFolder")},                                                                                 \
        {FILE_FIELD(labels, "IDX and NPY: the file of labels (may be gzipped), a path in the folder.", "IDX", "NPY")}, \
        {FILE_FIELD(text, "Bytes: the file whose bytes are the tokens, a path in the folder; of *.jsonl the texts.",   \
                    "Bytes")},                                                                                         \
        {FILE_FIELD(files,                                                                                             \
                    "CIFAR10, Tokens, TFRecord and CSV: the file, a path in the folder; a * in its last part "         \
                    "takes all files of such names, in their order.",                                                  \
                    "CIFAR10", "Tokens", "TFRecord", "CSV")},                                                          \
        {.name = "inputs",                                                                                             \
         .kind = FIELD_LIST,                                                                                           \
         MEMBER(data_files, inputs),                                                                                   \
         COMPANION(data_files, input_count),                                                                           \
         RANGE(1, DATA_INPUTS_MAX),                                                                                    \
         ONLY_FOR("NPY"),                                                                                              \
         .type = &data_input_type,                                                                                     \
         .description =                                                                                                \
             "NPY: a file for each input of a program, instead of images. Every input needs one; the order "           \
             "does not matter."},                                                                                      \
    {                                                                                                                  \
        .name = "first", .kind = FIELD_INTEGER, MEMBER(data_files, first), LONE, RANGE(0, COUNT_MAX),                  \
        .description = "Position of the first example to use; those before it are left out."                           \
    }

static const struct field train_files_fields[] = {FILE_FIELDS};
static OBJECT_TYPE(train_files_type, "Training files", train_files_fields);

static const struct field validation_files_fields[] = {
    FILE_FIELDS,
    {.name = "last",
     .kind = FIELD_INTEGER,
     MEMBER(data_files, last),
     LONE,
     RANGE(1, COUNT_MAX),
     .description = "Hold out this number of examples from the end of the training files, instead of naming files."},
    {.name = "sample",
     .kind = FIELD_INTEGER,
     MEMBER(data_files, sample),
     LONE,
     RANGE(1, COUNT_MAX),
     .description =
         "Hold out this number of examples from all over the training files, the same ones in every run. It "
         "suits files that are sorted, by their labels for example, where the last ones are not like the others."},
};
static OBJECT_TYPE(validation_files_type, "Validation files", validation_files_fields);

#define IMAGE_FORMATS "IDX", "Synthetic", "CIFAR10", "NPY", "TFRecord", "ImageFolder"
static const struct field augmentation_fields[] = {
    {.name = "horizontalFlip",
     .kind = FIELD_BOOLEAN,
     MEMBER(augmentation_spec, horizontal_flip),
     LONE,
     ONLY_FOR(IMAGE_FORMATS),
     .description = "Mirror each image with probability one half. False by default."},
    {.name = "cropPadding",
     .kind = FIELD_INTEGER,
     MEMBER(augmentation_spec, crop_padding),
     LONE,
     ONLY_FOR(IMAGE_FORMATS),
     RANGE(0, 64),
     .description =
         "Add this number of zeros on each side of the image, and cut out a piece of the image's size at a random "
         "place. It must be smaller than the image. Default: 0, which leaves the image as it is."},
};
static OBJECT_TYPE(augmentation_type, "Augmentation", augmentation_fields);

static const struct field data_fields[] = {
    {.name = "format",
     .kind = FIELD_ENUM,
     MEMBER(data_spec, format),
     LONE,
     .flags = FIELD_REQUIRED,
     .words = data_format_words,
     .description =
         "Form of the files: IDX (as MNIST comes), Bytes (any file; each byte is a token), Synthetic (no files, made "
         "from the seed), CIFAR10 (its binary version), NPY (NumPy arrays of images and of labels), Tokens (as llm.c "
         "writes them), TFRecord (tf.train.Example with an image of raw bytes or floats and a label), CSV (tables as "
         "text, or JSON Lines in *.jsonl; a column "
         "is the label), ImageFolder (PNG and JPEG files, in a folder for each class)."},
    {.name = "storage",
     .kind = FIELD_STRING,
     MEMBER(data_spec, storage),
     LONE,
     RANGE(1, NAME_MAX_LENGTH),
     FORMAT(NAME),
     .description = "Name of the storage that holds the files. Without it paths are absolute, in the container image."},
    {.name = "path",
     .kind = FIELD_STRING,
     MEMBER(data_spec, path),
     LONE,
     RANGE(1, PATH_MAX_LENGTH),
     FORMAT(PATH),
     .description = "Folder in the storage from which the paths of the files start. Default: the storage's root."},
    {.name = "train",
     .kind = FIELD_OBJECT,
     MEMBER(data_spec, train),
     LONE,
     .type = &train_files_type,
     .description = "The files to learn from."},
    {.name = "validation",
     .kind = FIELD_OBJECT,
     MEMBER(data_spec, validation),
     LONE,
     .type = &validation_files_type,
     .description = "Held-out examples, on which the model is tested and from which it never learns: the last examples "
                    "of the training files, or files of their own."},
    {.name = "examples",
     .kind = FIELD_INTEGER,
     MEMBER(data_spec, examples),
     LONE,
     ONLY_FOR("Synthetic"),
     RANGE(1, COUNT_MAX),
     .description = "Synthetic: the number of examples to generate."},
    {.name = "imageFeature",
     .kind = FIELD_STRING,
     MEMBER(data_spec, image_feature),
     LONE,
     ONLY_FOR("TFRecord"),
     RANGE(1, NAME_MAX_LENGTH),
     .description = "TFRecord: name of the feature that holds the image. Default: image."},
    {.name = "labelFeature",
     .kind = FIELD_STRING,
     MEMBER(data_spec, label_feature),
     LONE,
     ONLY_FOR("TFRecord"),
     RANGE(1, NAME_MAX_LENGTH),
     .description = "TFRecord: name of the feature that holds the label. Default: label."},
    {.name = "labelColumn",
     .kind = FIELD_STRING,
     MEMBER(data_spec, label_column),
     LONE,
     ONLY_FOR("CSV"),
     RANGE(1, NAME_MAX_LENGTH),
     .description = "CSV: the column with the label: its name in the first line, or its number from 1 on. Default: the "
                    "last one that is not skipped."},
    {.name = "skipColumns",
     .kind = FIELD_STRING_LIST,
     MEMBER(data_spec, skipped_columns),
     COMPANION(data_spec, skipped_column_count),
     .flags = FIELD_APART,
     ONLY_FOR("CSV"),
     RANGE(1, DATA_SKIPPED_MAX),
     BETWEEN(1, NAME_MAX_LENGTH),
     .description =
         "CSV: columns that the model does not get, such as identifiers, by their names in the first line or their "
         "numbers from 1 on."},
    {.name = "resize",
     .kind = FIELD_ENUM,
     MEMBER(data_spec, resize),
     LONE,
     ONLY_FOR("ImageFolder"),
     .words = image_resize_words,
     .description =
         "ImageFolder: how an image gets the size of the model's input. Stretch takes the whole image and may "
         "change its proportions; CenterCrop takes the largest middle part with the model's proportions. "
         "Default: Stretch."},
    {.name = "missing",
     .kind = FIELD_ENUM,
     MEMBER(data_spec, missing),
     LONE,
     ONLY_FOR("CSV"),
     .words = data_missing_words,
     .description =
         "CSV: what is done about rows in which a value or the label is missing (an empty field, NA, N/A, NaN, null, "
         "none or ?). Refuse fails the job with the columns and their first lines; DropRow leaves these rows out, of "
         "training and of held-out files. Columns of skipColumns do not count. Default: Refuse."},
    {.name = "standardize",
     .kind = FIELD_BOOLEAN,
     MEMBER(data_spec, standardize),
     LONE,
     ONLY_FOR("NPY", "CSV"),
     .description =
         "NPY and CSV: subtract from each value of an example its mean over the training examples, and divide by its "
         "standard deviation, which suits tables whose columns have different units. With loss MeanSquaredError also "
         "for the labels: the loss is then the share of their variance that the model does not explain. False by "
         "default."},
    {.name = "augmentation",
     .kind = FIELD_OBJECT,
     MEMBER(data_spec, augmentation),
     LONE,
     .type = &augmentation_type,
     .description =
         "Random changes of the training images in each epoch, as in He et al., 2016. They depend on training.seed, "
         "the "
         "epoch and the example, so they are the same for every crew, strategy and restart. Held-out images stay as "
         "they are."},
};
OBJECT_TYPE(data_type, "Data", data_fields, .kind_field = "format");

/* ---------------------------------------------------------------- training */

static const struct field schedule_fields[] = {
    {.name = "type",
     .kind = FIELD_ENUM,
     MEMBER(optimizer_spec, schedule.type),
     LONE,
     .words = schedule_type_words,
     .fallback = "Constant",
     .description =
         "Course of the learning rate after the warm-up: Constant, or down to finalFraction of it along a cosine "
         "(Cosine) or a line (Linear)."},
    {.name = "warmupSteps",
     .kind = FIELD_INTEGER,
     MEMBER(optimizer_spec, schedule.warmup_steps),
     LONE,
     RANGE(0, COUNT_MAX),
     .fallback = "0",
     .description = "Steps in which the learning rate rises linearly from zero."},
    {.name = "finalFraction",
     .kind = FIELD_DECIMAL,
     MEMBER(optimizer_spec, schedule.final_fraction),
     LONE,
     ONLY_FOR("Cosine", "Linear"),
     BETWEEN(0, 1),
     .fallback = "0",
     .description = "Cosine and Linear: the share of the learning rate that is left at the last step."},
};
static OBJECT_TYPE(schedule_type, "Schedule", schedule_fields, .kind_field = "type");

static const struct field optimizer_fields[] = {
    {.name = "type",
     .kind = FIELD_ENUM,
     MEMBER(optimizer_spec, type),
     LONE,
     .words = optimizer_type_words,
     .fallback = "SGD",
     .description = "SGD (with momentum) or AdamW (Loshchilov and Hutter, 2019)."},
    {.name = "learningRate",
     .kind = FIELD_DECIMAL,
     MEMBER(optimizer_spec, learning_rate),
     LONE,
     BETWEEN(0, 1000),
     .above = true,
     .fallback = "0.01",
     .description = "Learning rate, such as 3e-4. It is never rescaled silently."},
    {.name = "momentum",
     .kind = FIELD_DECIMAL,
     MEMBER(optimizer_spec, momentum),
     LONE,
     ONLY_FOR("SGD"),
     BETWEEN(0, 1),
     .below = true,
     .fallback = "0.9",
     .description = "SGD: share of the last update that is kept."},
    {.name = "beta1",
     .kind = FIELD_DECIMAL,
     MEMBER(optimizer_spec, beta1),
     LONE,
     ONLY_FOR("AdamW"),
     BETWEEN(0, 1),
     .below = true,
     .fallback = "0.9",
     .description = "AdamW: decay of the gradient's running mean."},
    {.name = "beta2",
     .kind = FIELD_DECIMAL,
     MEMBER(optimizer_spec, beta2),
     LONE,
     ONLY_FOR("AdamW"),
     BETWEEN(0, 1),
     .below = true,
     .fallback = "0.999",
     .description = "AdamW: decay of the squared gradient's running mean."},
    {.name = "epsilon",
     .kind = FIELD_DECIMAL,
     MEMBER(optimizer_spec, epsilon),
     LONE,
     ONLY_FOR("AdamW"),
     BETWEEN(0, 1),
     .above = true,
     .fallback = "1e-8",
     .description = "AdamW: added to the denominator."},
    {.name = "weightDecay",
     .kind = FIELD_DECIMAL,
     MEMBER(optimizer_spec, weight_decay),
     LONE,
     BETWEEN(0, 1000),
     .fallback = "0",
     .description = "Decay of the weights, independent of the gradient for AdamW."},
    {.name = "schedule",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct optimizer_spec),
     LONE,
     .type = &schedule_type,
     .fallback = "{}",
     .description = "Course of the learning rate over the run."},
};
static OBJECT_TYPE(optimizer_type, "Optimizer", optimizer_fields, .kind_field = "type");

static const struct field training_fields[] = {
    {.name = "epochs",
     .kind = FIELD_INTEGER,
     MEMBER(training_spec, epochs),
     LONE,
     RANGE(1, 1000000),
     .description = "How many times training goes through the data. Either this or steps."},
    {.name = "steps",
     .kind = FIELD_INTEGER,
     MEMBER(training_spec, steps),
     LONE,
     RANGE(1, COUNT_MAX),
     .description = "How many optimizer steps training takes. Either this or epochs."},
    {.name = "stepsPerEpoch",
     .kind = FIELD_INTEGER,
     MEMBER(training_spec, steps_per_epoch),
     LONE,
     RANGE(1, COUNT_MAX),
     .description = "Steps that count as one epoch. Default: the examples divided by the global batch, rounded up."},
    {.name = "batchSize",
     .kind = FIELD_INTEGER,
     MEMBER(training_spec, batch_size),
     LONE,
     RANGE(1, BATCH_MAX),
     .description = "The global batch: examples of one optimizer step, over all workers and devices. Either this or "
                    "perReplicaBatchSize."},
    {.name = "perReplicaBatchSize",
     .kind = FIELD_INTEGER,
     MEMBER(training_spec, per_replica_batch_size),
     LONE,
     RANGE(1, BATCH_MAX),
     .description = "Examples of one step on each replica, so that the global batch grows with the crew. Needs "
                    "scaleLearningRate."},
    {.name = "scaleLearningRate",
     .kind = FIELD_ENUM,
     MEMBER(training_spec, scale_learning_rate),
     LONE,
     .words = scale_learning_rate_words,
     .description =
         "With perReplicaBatchSize: multiply the learning rate by the number of replicas (Linear) or leave it (None)."},
    {.name = "gradientAccumulation",
     .kind = FIELD_INTEGER,
     MEMBER(training_spec, gradient_accumulation),
     LONE,
     RANGE(1, 4096),
     .fallback = "1",
     .description = "Number of passes in which a replica computes its share of the batch one part at a time, to need "
                    "less memory."},
    {.name = "optimizer",
     .kind = FIELD_OBJECT,
     MEMBER(training_spec, optimizer),
     LONE,
     .type = &optimizer_type,
     .fallback = "{}",
     .description = "The optimizer, which changes the weights by their gradients."},
    {.name = "precision",
     .kind = FIELD_ENUM,
     MEMBER(training_spec, precision),
     LONE,
     .words = precision_words,
     .fallback = "Float32",
     .description =
         "Arithmetic of the layers: Float32; TF32, the same except that GPUs cut the factors of matrix products and of "
         "cuDNN's convolutions to TF32; BFloat16, or Float16 (whose losses are scaled), both with Float32 master "
         "weights."},
    {.name = "gradientClipNorm",
     .kind = FIELD_DECIMAL,
     MEMBER(training_spec, gradient_clip_norm),
     LONE,
     BETWEEN(0, 1000000),
     .above = true,
     .description = "Scale the gradient down to this Euclidean norm when it is longer. Default: no clipping."},
    {.name = "seed",
     .kind = FIELD_INTEGER,
     MEMBER(training_spec, seed),
     LONE,
     RANGE(0, COUNT_MAX),
     .fallback = "0",
     .description = "Seed of the initial weights and of the order of examples."},
    {.name = "determinism",
     .kind = FIELD_ENUM,
     MEMBER(training_spec, determinism),
     LONE,
     .words = determinism_words,
     .fallback = "Crew",
     .description =
         "Crew: the same bits for any number of workers and any restart. Run: the same bits for an equal crew; it lets "
         "collective Ring and NCCL add in their own order, and changes nothing with any other, whose sums are Crew's."},
    {.name = "preflight",
     .kind = FIELD_BOOLEAN,
     MEMBER(training_spec, preflight),
     LONE,
     .fallback = "false",
     .description =
         "Each worker checks arithmetic, memory and its connections before the first step, which takes a few "
         "seconds. A worker that computes wrong values, or is much slower than the others, is ended (exit code "
         "161), and its successor avoids the node."},
    {.name = "logicalShards",
     .kind = FIELD_INTEGER,
     MEMBER(training_spec, logical_shards),
     LONE,
     RANGE(1, 4096),
     .description =
         "Parts into which the global batch is cut, each computed alone; the most replicas that can share it. "
         "Default: workers x devices x accumulation."},
};
OBJECT_TYPE(training_type, "Training", training_fields);

/* ---------------------------------------------------------------- init, export, evaluate, checkpoint, storage */

static const struct field init_fields[] = {
    FILE_ON_STORAGE(
        job_document, init_storage,
        "Name of the storage that holds the file. Without it the path is absolute and inside the image.", init_path,
        "A path in the storage. Either a safetensors file to take the first weights from; or a checkpoint of another "
        "job, a folder such as digits/step-00000120.attempt-1.incarnation-1, to go on from with its optimizer and its "
        "place in the data; or the folder of all checkpoints of a job that is over, to go on from the newest."),
};
OBJECT_TYPE(init_type, "Init", init_fields);

static const struct field export_fields[] = {
    FILE_ON_STORAGE(job_document, export_storage,
                    "Name of the storage to write to. Without it the path is absolute and the file ends with the pod.",
                    export_path, "Where the trained weights go: a path in the storage."),
    {.name = "format",
     .kind = FIELD_ENUM,
     MEMBER(job_document, export_format),
     LONE,
     .words = export_format_words,
     .fallback = "Safetensors",
     .description = "Form of the file."},
    {.name = "weights",
     .kind = FIELD_ENUM,
     MEMBER(job_document, export_weights),
     LONE,
     .words = export_weights_words,
     .fallback = "Last",
     .description = "Last: the weights of the last step. Best: those of the evaluation with the lowest loss; needs "
                    "checkpoint.keepBest."},
    {.name = "names",
     .kind = FIELD_ENUM,
     MEMBER(job_document, export_names),
     LONE,
     .words = export_names_words,
     .fallback = "Coxswain",
     .description =
         "Names of the tensors: Coxswain, those of the layers; HuggingFace, those of its GPT-2 (gpt presets only)."},
};
OBJECT_TYPE(export_type, "Export", export_fields);

static const struct field evaluation_fields[] = {
    {.name = "everySteps",
     .kind = FIELD_INTEGER,
     MEMBER(job_document, evaluation_every_steps),
     LONE,
     RANGE(1, COUNT_MAX),
     .description = "Steps between two tests on the validation data. Default: once an epoch."},
};
static OBJECT_TYPE(evaluation_type, "Evaluation", evaluation_fields);

static const struct field encryption_fields[] = {
    {.name = "type",
     .kind = FIELD_ENUM,
     MEMBER(job_document, encryption),
     LONE,
     .words = encryption_words,
     .fallback = "None",
     .description =
         "None, or TLS with certificates that the operator makes and rotates. Either way only processes that hold the "
         "job's key can join the crew."},
};
static OBJECT_TYPE(encryption_type, "Encryption", encryption_fields);

static const struct field checkpoint_fields[] = {
    {.name = "storage",
     .kind = FIELD_STRING,
     MEMBER(checkpoint_spec, storage),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, NAME_MAX_LENGTH),
     FORMAT(NAME),
     .description = "Name of the storage to save to; all pods must reach it."},
    {.name = "path",
     .kind = FIELD_STRING,
     MEMBER(checkpoint_spec, path),
     LONE,
     RANGE(1, PATH_MAX_LENGTH),
     FORMAT(PATH),
     .description =
         "Folder in the storage. Default: the job's name; in a bucket NAMESPACE/NAME. A later job with the same folder "
         "goes on from there."},
    {.name = "everySteps",
     .kind = FIELD_INTEGER,
     MEMBER(checkpoint_spec, every_steps),
     LONE,
     RANGE(1, COUNT_MAX),
     .description =
         "Steps between two checkpoints. Either this or everySeconds; with neither, one is saved each epoch."},
    {.name = "everySeconds",
     .kind = FIELD_INTEGER,
     MEMBER(checkpoint_spec, every_seconds),
     LONE,
     RANGE(1, 1000000000),
     .description = "Seconds between two checkpoints; the first one is saved after 10 seconds at most. Either this or "
                    "everySteps."},
    {.name = "keep",
     .kind = FIELD_INTEGER,
     MEMBER(checkpoint_spec, keep),
     LONE,
     RANGE(1, 1000),
     .fallback = "3",
     .description = "How many verified checkpoints are kept; older ones are removed."},
    {.name = "onPreemption",
     .kind = FIELD_ENUM,
     MEMBER(checkpoint_spec, save_on_preemption),
     LONE,
     .words = on_preemption_words,
     .fallback = "Save",
     .description = "What a crew does when all its pods are asked to end: Save a checkpoint, or Discard the steps "
                    "since the last one."},
    {.name = "keepBest",
     .kind = FIELD_BOOLEAN,
     MEMBER(checkpoint_spec, keep_best),
     LONE,
     .fallback = "false",
     .description = "Keep the weights of the evaluation with the lowest validation loss in best.safetensors beside the "
                    "checkpoints; they are never removed."},
    {.name = "required",
     .kind = FIELD_BOOLEAN,
     MEMBER(checkpoint_spec, required),
     LONE,
     .fallback = "false",
     .description = "Fail rather than start anew when the folder holds checkpoints and none of them is intact."},
};
OBJECT_TYPE(checkpoint_type, "Checkpoint", checkpoint_fields);

#define VOLUME(field_name, words_about_it)                                                                             \
    {                                                                                                                  \
        .name = field_name, .kind = FIELD_VOLUME, MEMBER(storage_spec, source), LONE, .description = words_about_it    \
    }

static const struct field s3_secret_fields[] = {
    {.name = "name",
     .kind = FIELD_STRING,
     MEMBER(s3_spec, secret_name),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, 253),
     FORMAT(DOTTED_NAME),
     .description = "Name of a Secret in the job's namespace with the keys AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY "
                    "and, if needed, "
                    "AWS_SESSION_TOKEN and ca.crt, the CA certificates of servers whose authority is your own. With "
                    "ca.crt alone, credentials are those of the pods' service account. It may be rotated while the "
                    "job runs."},
};
static OBJECT_TYPE(s3_secret_type, "S3 secret", s3_secret_fields);

static const struct field s3_sync_fields[] = {
    {.name = "everySeconds",
     .kind = FIELD_INTEGER,
     MEMBER(s3_sync_spec, every_seconds),
     LONE,
     RANGE(1, 86400),
     .fallback = "10",
     .description = "How often new and changed files are looked for. Files are uploaded when they have not changed for "
                    "ten seconds."},
    {.name = "deleteRemoved",
     .kind = FIELD_BOOLEAN,
     MEMBER(s3_sync_spec, delete_removed),
     LONE,
     .fallback = "true",
     .description = "Remove the objects of files that the program removes, such as older checkpoints. If false, all "
                    "stay, and each new pod copies all of them, for which cacheSize has to suffice."},
};
static OBJECT_TYPE(s3_sync_type, "S3 sync", s3_sync_fields);

static const struct field s3_fields[] = {
    {.name = "endpoint",
     .kind = FIELD_STRING,
     MEMBER(s3_spec, endpoint),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(8, 253),
     FORMAT(ENDPOINT),
     .description = "Address of the server: https://s3.eu-central-1.amazonaws.com, https://storage.googleapis.com, "
                    "http://minio:9000."},
    {.name = "bucket",
     .kind = FIELD_STRING,
     MEMBER(s3_spec, bucket),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(3, 63),
     FORMAT(DOTTED_NAME),
     .description = "Name of the bucket."},
    {.name = "prefix",
     .kind = FIELD_STRING,
     MEMBER(s3_spec, prefix),
     LONE,
     RANGE(1, PATH_MAX_LENGTH),
     FORMAT(PATH),
     .description =
         "The storage consists of the objects whose keys begin with this prefix and a slash. Default: of "
         "all objects of the bucket; with sync, NAMESPACE/NAME of the job. Only one job at a time may sync a "
         "prefix."},
    {.name = "region",
     .kind = FIELD_STRING,
     MEMBER(s3_spec, region),
     LONE,
     RANGE(1, NAME_MAX_LENGTH),
     FORMAT(NAME),
     .description =
         "Region that requests are signed for. Default: us-east-1, which servers other than AWS accept; auto for "
         "endpoints at googleapis.com."},
    {.name = "secretRef",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct s3_spec),
     LONE,
     .type = &s3_secret_type,
     .description =
         "Credentials. Only the containers that copy files see them, and the trainers if checkpoint names the "
         "storage. Without it the identity of the pods' service account is used "
         "if the cluster gives it one, else requests are not signed, which suffices to read from public buckets."},
    {.name = "cacheSize",
     .kind = FIELD_STRING,
     MEMBER(s3_spec, cache_size),
     LONE,
     RANGE(1, 20),
     FORMAT(BYTES),
     .fallback = "10Gi",
     .description = "Size limit of the pod's local copy of the objects; the job fails if they are larger. With "
                    "checkpoints, the copy must have room for two of them."},
    {.name = "sync",
     .kind = FIELD_OBJECT,
     MEMBER(s3_spec, sync),
     COMPANION(s3_spec, sync.enabled),
     .type = &s3_sync_type,
     .description =
         "pytorch, tensorflow, jax: the programs may write to the storage. What is complete in the bucket is copied to "
         "each pod before it starts, and a sidecar of the chief, or of worker 0, uploads what that pod writes. Needs "
         "Kubernetes 1.29."},
};
static OBJECT_TYPE(s3_type, "S3", s3_fields);

static const struct field download_source_fields[] = {
    {.name = "url",
     .kind = FIELD_STRING,
     MEMBER(download_source, url),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(8, 1024),
     FORMAT(DOWNLOAD),
     .description =
         "https://HOST/PATH, which becomes the file HOST/PATH of the storage, or hf://ORG/NAME[@REVISION][/PATTERN], a "
         "model of the Hugging Face hub, which becomes the folder ORG/NAME[@REVISION]; hf://datasets/ORG/NAME is a "
         "data "
         "set. A * in PATTERN stands for any characters."},
    {.name = "sha256",
     .kind = FIELD_STRING,
     MEMBER(download_source, sha256),
     LONE,
     RANGE(64, 64),
     FORMAT(SHA256),
     .description =
         "https://: the file's digest; required. The files of the hub are verified by the digests that it lists."},
};
OBJECT_TYPE(download_source_type, "Download source", download_source_fields, .size = sizeof(struct download_source),
            .map_key = "url");

static const struct field download_secret_fields[] = {
    {.name = "name",
     .kind = FIELD_STRING,
     MEMBER(download_spec, secret_name),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, 253),
     FORMAT(DOTTED_NAME),
     .description = "Name of a Secret in the job's namespace with the key token, the key ca.crt (the certificates that "
                    "the servers are verified with), or both."},
};
static OBJECT_TYPE(download_secret_type, "Download secret", download_secret_fields);

static const struct field download_fields[] = {
    {.name = "sources",
     .kind = FIELD_LIST,
     MEMBER(download_spec, sources),
     COMPANION(download_spec, source_count),
     .flags = FIELD_REQUIRED,
     RANGE(1, DOWNLOAD_SOURCES_MAX),
     .type = &download_source_type,
     .description = "The files to download."},
    {.name = "hub",
     .kind = FIELD_STRING,
     MEMBER(download_spec, hub),
     LONE,
     RANGE(8, 253),
     FORMAT(ENDPOINT),
     .description = "Address of the hub or of a mirror. Default: https://huggingface.co."},
    {.name = "secretRef",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct download_spec),
     LONE,
     .type = &download_secret_type,
     .description =
         "A token for the sources' host, which all of them must have then. Only the containers that download "
         "see it."},
    {.name = "sizeLimit",
     .kind = FIELD_STRING,
     MEMBER(download_spec, size_limit),
     LONE,
     RANGE(1, 20),
     FORMAT(BYTES),
     .fallback = "100Gi",
     .description = "Size limit of the files of all sources together; the job fails if they are larger. Other files in "
                    "the volume do not count."},
};
static OBJECT_TYPE(download_type, "Download", download_fields);

static const struct field storage_fields[] = {
    {.name = "name",
     .kind = FIELD_STRING,
     MEMBER(storage_spec, name),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, NAME_MAX_LENGTH),
     FORMAT(NAME),
     .description =
         "Name by which data, checkpoint, export and init refer to it; mounted at /coxswain/storage/<name>."},
    {.name = "readOnly",
     .kind = FIELD_BOOLEAN,
     MEMBER(storage_spec, read_only),
     LONE,
     .fallback = "false",
     .description = "Mount it read-only."},
    VOLUME("persistentVolumeClaim", "A claim in the job's namespace: {claimName: …}, as in a pod's volumes."),
    VOLUME("hostPath", "A folder of the node: {path: …}, as in a pod's volumes."),
    VOLUME("emptyDir", "A folder that lives as long as the pod, as in a pod's volumes."),
    VOLUME("nfs", "An NFS export: {server: …, path: …}, as in a pod's volumes."),
    VOLUME("csi", "A volume of a CSI driver, as in a pod's volumes."),
    VOLUME("ephemeral", "A claim made for each pod, as in a pod's volumes."),
    VOLUME("configMap", "A ConfigMap, as in a pod's volumes."),
    VOLUME("secret", "A Secret, as in a pod's volumes."),
    VOLUME("projected", "Several sources in one folder, as in a pod's volumes."),
    VOLUME("image", "The files of a container image, read-only: {reference: …, pullPolicy: …}, as in a pod's volumes."),
    {.name = "s3",
     .kind = FIELD_OBJECT,
     MEMBER(storage_spec, s3),
     COMPANION(storage_spec, s3.enabled),
     .type = &s3_type,
     .description =
         "Objects of a bucket with the interface of S3. Each pod copies what the job reads before it starts, "
         "read-only. If checkpoint or export names the storage, the job's checkpoints or its export are uploaded to "
         "it; with sync, whatever the programs of another framework write."},
    {.name = "download",
     .kind = FIELD_OBJECT,
     MEMBER(storage_spec, download),
     COMPANION(storage_spec, download.enabled),
     .type = &download_type,
     .description = "Files that are downloaded into this volume before the pods' programs start, once for all pods and "
                    "jobs that share it."},
};
OBJECT_TYPE(storage_type, "Storage", storage_fields, .size = sizeof(struct storage_spec), .map_key = "name");

/* ---------------------------------------------------------------- coxswain: what our own worker does */

#define SECTION(section_name, member, section_type, words_about_it)                                                    \
    .name = section_name, .kind = FIELD_OBJECT, MEMBER(job_document, member), .type = section_type,                    \
    .description = words_about_it
#define FLAT_SECTION(section_name, section_type, words_about_it)                                                       \
    {                                                                                                                  \
        .name = section_name, .kind = FIELD_OBJECT, .offset = 0, .size = sizeof(struct job_document), LONE,            \
        .type = section_type, .description = words_about_it                                                            \
    }

static const struct field coxswain_fields[] = {
    {SECTION("strategy", strategy, &strategy_type, "The strategy by which the workers share the training."), LONE,
     .flags = FIELD_REQUIRED},
    {SECTION("model", model, &model_type, "The model to train."), LONE, .flags = FIELD_REQUIRED},
    {SECTION("data", data, &data_type, "The training data and the held-out data."), LONE, .flags = FIELD_REQUIRED},
    {SECTION("training", training, &training_type, "Length of the training, batch size, optimizer and precision."),
     LONE, .flags = FIELD_REQUIRED},
    FLAT_SECTION("init", &init_type, "Where the first weights come from. Default: drawn from the seed."),
    {SECTION("checkpoint", checkpoint, &checkpoint_type, "When and where the state is saved. Default: never."),
     COMPANION(job_document, checkpoint.enabled)},
    FLAT_SECTION("export", &export_type, "Where the trained weights go. Default: nowhere but the checkpoint."),
    FLAT_SECTION("evaluation", &evaluation_type, "When the model is tested on the validation data."),
    FLAT_SECTION("encryption", &encryption_type,
                 "Encryption of the messages between the job's pods. Default: they are not encrypted."),
};
OBJECT_TYPE(coxswain_type, "Coxswain", coxswain_fields);

/* ---------------------------------------------------------------- what the spec and the job document share */

/* Both tables have these rows; `at` leads from the struct `owner` to its job_document. */
#define DEVICES_AND_STORAGE(owner, at)                                                                                 \
    {.name = "devices",                                                                                                \
     .kind = FIELD_OBJECT,                                                                                             \
     MEMBER(owner, at devices),                                                                                        \
     LONE,                                                                                                             \
     .flags = FIELD_MUTABLE_INSIDE,                                                                                    \
     .type = &devices_type,                                                                                            \
     .fallback = "{}",                                                                                                 \
     .description = "The devices of each worker."},                                                                    \
    {                                                                                                                  \
        .name = "storage", .kind = FIELD_LIST, MEMBER(owner, at storage), COMPANION(owner, at storage_count),          \
        RANGE(0, 16), .type = &storage_type,                                                                           \
        .description = "Named volumes that every pod of the job mounts. Each has exactly one source."                  \
    }

/* ---------------------------------------------------------------- the job document alone */

static const struct field document_workers_fields[] = {
    {.name = "replicas",
     .kind = FIELD_INTEGER,
     MEMBER(job_document, workers),
     LONE,
     RANGE(1, TRAINERS_MAX),
     .fallback = "1",
     .description = "Processes of role worker, where neither crew nor TF_CONFIG says so."},
};
static OBJECT_TYPE(document_workers_type, "Workers of a job document", document_workers_fields);

static const struct field crew_role_fields[] = {
    {.name = "name",
     .kind = FIELD_STRING,
     MEMBER(crew_role, name),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, NAME_MAX_LENGTH),
     FORMAT(NAME),
     .description = "chief, worker, ps or evaluator."},
    {.name = "count",
     .kind = FIELD_INTEGER,
     MEMBER(crew_role, count),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, TRAINERS_MAX),
     .description = "Processes of that role."},
    {.name = "minCount",
     .kind = FIELD_INTEGER,
     MEMBER(crew_role, min_count),
     LONE,
     RANGE(1, TRAINERS_MAX),
     .description = "Elastic jobs: the fewest of them with which training runs. Default: count."},
    {.name = "maxCount",
     .kind = FIELD_INTEGER,
     MEMBER(crew_role, max_count),
     LONE,
     RANGE(1, TRAINERS_MAX),
     .description = "Elastic jobs: the most of them that there will ever be. Default: count."},
};
static OBJECT_TYPE(crew_role_type, "Crew role", crew_role_fields, .size = sizeof(struct crew_role), .map_key = "name");

static const struct field crew_fields[] = {
    {.name = "roles",
     .kind = FIELD_LIST,
     MEMBER(crew_spec, roles),
     COMPANION(crew_spec, role_count),
     .flags = FIELD_REQUIRED | FIELD_INLINE,
     RANGE(1, CREW_ROLES_MAX),
     .type = &crew_role_type,
     .description = "The roles and how many processes each has."},
    {.name = "hostPattern",
     .kind = FIELD_STRING,
     MEMBER(crew_spec, host_pattern),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, 512),
     .description = "Host name of a process, with {role} and {index} in it."},
    {.name = "port",
     .kind = FIELD_INTEGER,
     MEMBER(crew_spec, port),
     LONE,
     RANGE(1, 65535),
     .fallback = "2222",
     .description = "The port on which the chief listens for its crew."},
};
static OBJECT_TYPE(crew_type, "Crew", crew_fields);

static const struct field job_document_fields[] = {
    {.name = "name",
     .kind = FIELD_STRING,
     MEMBER(job_document, job_name),
     LONE,
     RANGE(1, 253),
     .description = "The job's name."},
    {.name = "namespace",
     .kind = FIELD_STRING,
     MEMBER(job_document, job_namespace),
     LONE,
     RANGE(1, 253),
     .description = "The job's namespace."},
    {.name = "workers",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct job_document),
     LONE,
     .type = &document_workers_type,
     .fallback = "{}",
     .description = "The number of workers."},
    DEVICES_AND_STORAGE(job_document, ),
    {SECTION("crew", crew, &crew_type,
             "The processes that take part. Default: this process alone, or those of TF_CONFIG."),
     LONE},
};
OBJECT_TYPE(job_document_type, "Job document", job_document_fields, .base = &coxswain_type);

/* ---------------------------------------------------------------- the rest of the spec */

#define TEMPLATE(which_role)                                                                                           \
    {                                                                                                                  \
        .name = "template", .kind = FIELD_OPAQUE, MEMBER(training_job, roles[which_role].template), LONE,              \
        .flags = FIELD_MUTABLE_SUSPENDED,                                                                              \
        .description =                                                                                                 \
            "A pod template laid over the default one: metadata and spec as in a Deployment. The container named "     \
            "trainer, else the first one, trains."                                                                     \
    }

static const struct field workers_fields[] = {
    {.name = "replicas",
     .kind = FIELD_INTEGER,
     MEMBER(training_job, document.workers),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(1, PODS_MAX),
     .fallback = "1",
     .description = "Pods of role worker; worker 0 is the chief unless a chief is given. With coxswain at most 128, "
                    "with the chief; "
                    "with other frameworks at most 1000. May change only with minReplicas and maxReplicas."},
    {.name = "minReplicas",
     .kind = FIELD_INTEGER,
     MEMBER(training_job, elastic.min_workers),
     LONE,
     RANGE(1, PODS_MAX),
     .description =
         "Makes the job elastic, together with maxReplicas. Training runs while at least this number of workers is "
         "there, worker 0 included. A PyTorch job succeeds once at least this number has exited with 0 and no worker "
         "is still at work."},
    {.name = "maxReplicas",
     .kind = FIELD_INTEGER,
     MEMBER(training_job, elastic.max_workers),
     LONE,
     RANGE(1, PODS_MAX),
     .description = "The most workers that the job may be scaled to."},
    TEMPLATE(ROLE_WORKER),
};
OBJECT_TYPE(workers_type, "Workers", workers_fields);

static const struct field chief_fields[] = {TEMPLATE(ROLE_CHIEF)};
static OBJECT_TYPE(chief_type, "Chief", chief_fields);

static const struct field servers_fields[] = {
    {.name = "replicas",
     .kind = FIELD_INTEGER,
     MEMBER(training_job, roles[ROLE_PS].count),
     LONE,
     RANGE(1, PODS_MAX),
     .fallback = "1",
     .description = "Pods of role ps."},
    TEMPLATE(ROLE_PS),
};
static OBJECT_TYPE(servers_type, "Parameter servers", servers_fields);

static const struct field evaluator_fields[] = {TEMPLATE(ROLE_EVALUATOR)};
static OBJECT_TYPE(evaluator_type, "Evaluator", evaluator_fields);

/* ---------------------------------------------------------------- pytorch, tensorflow, jax */

static const struct field foreign_checkpoint_fields[] = {
    {.name = "storage",
     .kind = FIELD_STRING,
     MEMBER(checkpoint_spec, storage),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, NAME_MAX_LENGTH),
     FORMAT(NAME),
     .description = "Name of the storage to save to; all pods must reach it."},
    {.name = "path",
     .kind = FIELD_STRING,
     MEMBER(checkpoint_spec, path),
     LONE,
     RANGE(1, PATH_MAX_LENGTH),
     FORMAT(PATH),
     .description = "Folder in the storage. Default: the job's name."},
};
static OBJECT_TYPE(foreign_checkpoint_type, "Checkpoint folder", foreign_checkpoint_fields);

static const struct field foreign_progress_fields[] = {
    {.name = "logPatterns",
     .kind = FIELD_STRING_LIST,
     MEMBER(progress_spec, log_patterns),
     COMPANION(progress_spec, log_pattern_count),
     RANGE(1, LOG_PATTERNS_MAX),
     BETWEEN(1, LOG_PATTERN_MAX),
     .check = log_pattern_check,
     .description =
         "Regular expressions (PCRE2) with named groups, which the operator searches for in the chief's log. "
         "Groups called step, totalSteps and epoch are the job's progress, all others metrics: step "
         "(?<step>\\d+) loss (?<loss>[0-9.e+-]+)."},
    {.name = "push",
     .kind = FIELD_BOOLEAN,
     MEMBER(progress_spec, push),
     LONE,
     .fallback = "false",
     .description = "Pods get the URL, the certificate and the token with which a script sends its progress to the "
                    "operator over HTTPS, as the Trainer of Hugging Face Transformers does by itself."},
};
OBJECT_TYPE(foreign_progress_type, "Progress of a script", foreign_progress_fields);

static const struct field foreign_fields[] = {
    {SECTION("checkpoint", checkpoint, &foreign_checkpoint_type,
             "The folder for checkpoints, whose path the program finds in COXSWAIN_CHECKPOINT_DIR. Default: none."),
     COMPANION(job_document, checkpoint.enabled)},
    {SECTION("progress", progress, &foreign_progress_type,
             "How the operator learns the progress of the script while it runs. Default: not at all."),
     LONE},
};
static OBJECT_TYPE(foreign_type, "PyTorch, TensorFlow, JAX", foreign_fields);

/* ---------------------------------------------------------------- run policy */

static const struct field exit_codes_fields[] = {
    {.name = "operator",
     .kind = FIELD_ENUM,
     MEMBER(exit_code_match, operator),
     LONE,
     .words = exit_code_operator_words,
     .fallback = "In",
     .description = "In: the code is one of the values. NotIn: it is none of them."},
    {.name = "values",
     .kind = FIELD_INTEGER_LIST,
     MEMBER(exit_code_match, values),
     COMPANION(exit_code_match, value_count),
     .flags = FIELD_REQUIRED,
     RANGE(1, FAILURE_EXIT_CODES_MAX),
     BETWEEN(1, 255),
     .description = "Exit codes of the main container."},
};
static OBJECT_TYPE(exit_codes_type, "Exit codes", exit_codes_fields);

static const struct field pod_condition_fields[] = {
    {.name = "type",
     .kind = FIELD_STRING,
     MEMBER(pod_condition_match, type),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, 316),
     FORMAT(QUALIFIED_NAME),
     .description = "Type of a condition of the pod, such as DisruptionTarget."},
    {.name = "status",
     .kind = FIELD_ENUM,
     MEMBER(pod_condition_match, status),
     LONE,
     .words = pod_condition_status_words,
     .fallback = "True",
     .description = "Its status: True, False or Unknown."},
};
static OBJECT_TYPE(pod_condition_type, "Pod condition", pod_condition_fields,
                   .size = sizeof(struct pod_condition_match));

static const struct field failure_rule_fields[] = {
    {.name = "action",
     .kind = FIELD_ENUM,
     MEMBER(failure_rule, action),
     LONE,
     .flags = FIELD_REQUIRED,
     .words = failure_action_words,
     .description = "Ignore: the pod is replaced and nothing is counted against backoffLimit. Count: it is an "
                    "application failure. Fail: the job fails at once."},
    {.name = "onExitCodes",
     .kind = FIELD_OBJECT,
     MEMBER(failure_rule, exit_codes),
     COMPANION(failure_rule, has_exit_codes),
     .type = &exit_codes_type,
     .description = "The rule holds for pods whose main container ended with such a code. Either this or "
                    "onPodConditions."},
    {.name = "onPodConditions",
     .kind = FIELD_LIST,
     MEMBER(failure_rule, conditions),
     COMPANION(failure_rule, condition_count),
     RANGE(1, FAILURE_CONDITIONS_MAX),
     .type = &pod_condition_type,
     .description = "The rule holds for pods that ended with any of these conditions."},
};
OBJECT_TYPE(failure_rule_type, "Failure rule", failure_rule_fields, .size = sizeof(struct failure_rule));

static const struct field failure_policy_fields[] = {
    {.name = "rules",
     .kind = FIELD_LIST,
     MEMBER(failure_policy, rules),
     COMPANION(failure_policy, rule_count),
     .flags = FIELD_REQUIRED,
     RANGE(1, FAILURE_RULES_MAX),
     .type = &failure_rule_type,
     .description =
         "The first rule that matches decides. If none matches, the exit code and the pod's conditions decide."},
};
static OBJECT_TYPE(failure_policy_type, "Failure policy", failure_policy_fields);

static const struct field disruption_budget_fields[] = {
    {.name = "minAvailable",
     .kind = FIELD_INTEGER,
     MEMBER(disruption_budget_spec, min_available),
     LONE,
     RANGE(1, PODS_MAX),
     .description = "Pods that stay when others are evicted. Default: all required ones; of an elastic crew's workers "
                    "minReplicas."},
};
static OBJECT_TYPE(disruption_budget_type, "Disruption budget", disruption_budget_fields);

static const struct field gang_fields[] = {
    {.name = "scheduler",
     .kind = FIELD_ENUM,
     MEMBER(gang_spec, scheduler),
     LONE,
     .words = gang_scheduler_words,
     .fallback = "None",
     .description =
         "Which scheduler places all pods together or none: Volcano, Coscheduling (the scheduler plugins), Native (the "
         "PodGroup of scheduling.k8s.io), or None. If the cluster lacks it, no pod is created, and a condition says "
         "so."},
    {.name = "minAvailable",
     .kind = FIELD_INTEGER,
     MEMBER(gang_spec, min_available),
     LONE,
     RANGE(1, PODS_MAX),
     .description = "Pods that must find room together. Default: all required ones; of an elastic crew's workers "
                    "minReplicas."},
    {.name = "queue",
     .kind = FIELD_STRING,
     MEMBER(gang_spec, queue),
     LONE,
     RANGE(1, 253),
     FORMAT(DOTTED_NAME),
     .description = "Volcano: the queue. Default: Volcano's own."},
    {.name = "scheduleTimeoutSeconds",
     .kind = FIELD_INTEGER,
     MEMBER(gang_spec, schedule_timeout_seconds),
     LONE,
     RANGE(1, 86400),
     .description =
         "Coscheduling: how long pods that have found room wait for the others. Default: the scheduler's own."},
    {.name = "topologyKey",
     .kind = FIELD_STRING,
     MEMBER(gang_spec, topology_key),
     LONE,
     RANGE(1, 317),
     FORMAT(QUALIFIED_NAME),
     .description =
         "Native: all pods are placed on nodes with the same value of this label, such as "
         "topology.kubernetes.io/rack. Needs the feature gate TopologyAwareWorkloadScheduling of Kubernetes. "
         "Default: any nodes."},
};
OBJECT_TYPE(gang_type, "Gang", gang_fields);

static const struct field node_avoidance_fields[] = {
    {.name = "failures",
     .kind = FIELD_INTEGER,
     MEMBER(node_avoidance_spec, failures),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(0, 16),
     .description = "How many failures on one node within windowSeconds make new pods avoid it. 0: nodes are never "
                    "avoided. Default: 3."},
    {.name = "windowSeconds",
     .kind = FIELD_INTEGER,
     MEMBER(node_avoidance_spec, window_seconds),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(1, COUNT_MAX),
     .description = "The time within which failures count together, and for which a node is avoided after the last of "
                    "them. Default: 3600."},
    {.name = "unschedulableSeconds",
     .kind = FIELD_INTEGER,
     MEMBER(node_avoidance_spec, unschedulable_seconds),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(1, COUNT_MAX),
     .description = "If a pod that avoids nodes finds no node for this number of seconds, the nodes are avoided no "
                    "longer. Default: 300."},
};
static OBJECT_TYPE(node_avoidance_type, "Node avoidance", node_avoidance_fields);

static const struct field straggler_replacement_fields[] = {
    {.name = "afterSeconds",
     .kind = FIELD_INTEGER,
     MEMBER(straggler_replacement_spec, after_seconds),
     LONE,
     .flags = FIELD_REQUIRED | FIELD_MUTABLE,
     RANGE(10, COUNT_MAX),
     .description = "A worker's pod is replaced once the chief has reported the worker as a straggler for this number "
                    "of seconds without a break."},
    {.name = "maxPerHour",
     .kind = FIELD_INTEGER,
     MEMBER(straggler_replacement_spec, max_per_hour),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(1, STRAGGLER_REPLACEMENTS_MAX),
     .description = "The most pods of the job that are replaced for this within an hour. Default: 2."},
};
static OBJECT_TYPE(straggler_replacement_type, "Straggler replacement", straggler_replacement_fields);

/* The fields that a class may give, too. None has a default here, so the operator can see which of them a job leaves to its class. */
static const struct field class_run_policy_fields[] = {
    {.name = "activeDeadlineSeconds",
     .kind = FIELD_INTEGER,
     MEMBER(run_policy, active_deadline_seconds),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(1, COUNT_MAX),
     .description = "The job fails after this number of seconds, without the time suspended, and that in which neither "
                    "pods nor an operator ran. Default: no deadline."},
    {.name = "progressDeadlineSeconds",
     .kind = FIELD_INTEGER,
     MEMBER(run_policy, progress_deadline_seconds),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(1, COUNT_MAX),
     .description =
         "The whole crew starts over, which spends backoffLimit, if it reports no new step for this number of seconds "
         "while all its pods run. The time to the first step counts, and so do evaluations and saves. With pytorch, "
         "tensorflow and jax, give progress, too. Default: no deadline."},
    {.name = "ttlSecondsAfterFinished",
     .kind = FIELD_INTEGER,
     MEMBER(run_policy, ttl_seconds_after_finished),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(0, COUNT_MAX),
     .description = "The job is deleted this number of seconds after its end. Default: it is kept."},
    {.name = "failurePolicy",
     .kind = FIELD_OBJECT,
     MEMBER(run_policy, failure_policy),
     LONE,
     .type = &failure_policy_type,
     .description = "Rules that override how the operator reacts to certain exit codes and conditions of pods. For the "
                    "default see docs/operations.md."},
    {.name = "forceDeleteAfterSeconds",
     .kind = FIELD_INTEGER,
     MEMBER(run_policy, force_delete_after_seconds),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(0, COUNT_MAX),
     .description =
         "A pod that was asked to end and still exists this number of seconds after its grace period is removed from "
         "the API, whatever its node says. Default: jobs with coxswain, after 60 s, and only if the node is gone, not "
         "ready or marked as unreachable or out of service; other frameworks, never. Set it only if the node is known "
         "to be gone: otherwise two pods may run."},
    {.name = "avoidNodeConditions",
     .kind = FIELD_STRING_LIST,
     MEMBER(run_policy, avoided_conditions),
     COMPANION(run_policy, avoided_condition_count),
     .flags = FIELD_MUTABLE,
     RANGE(1, AVOIDED_CONDITIONS_MAX),
     BETWEEN(1, 316),
     .description =
         "Types of conditions of nodes, such as GpuUnhealthy: new pods are not placed on a node where one is "
         "True, and pods that run there are ended, so that they can save, and replaced elsewhere."},
    {.name = "nodeAvoidance",
     .kind = FIELD_OBJECT,
     MEMBER(run_policy, node_avoidance),
     LONE,
     .flags = FIELD_MUTABLE_INSIDE,
     .type = &node_avoidance_type,
     .description = "When new pods avoid a node on which pods of the job have failed for reasons that the node may be "
                    "to blame for: it was lost, its kubelet refused the pod, or a device failed."},
    {.name = "priorityClassName",
     .kind = FIELD_STRING,
     MEMBER(run_policy, priority_class_name),
     LONE,
     RANGE(1, 253),
     FORMAT(DOTTED_NAME),
     .description = "PriorityClass of the pods."},
};
static OBJECT_TYPE(class_run_policy_type, "Run policy of a class", class_run_policy_fields);

static const struct field run_policy_fields[] = {
    {.name = "backoffLimit",
     .kind = FIELD_INTEGER,
     MEMBER(run_policy, backoff_limit),
     LONE,
     .flags = FIELD_MUTABLE_SUSPENDED,
     RANGE(0, 1000),
     .fallback = "6",
     .description = "Number of failures after which pods are still replaced; with one more the job fails. Preemptions "
                    "and other disruptions do not count."},
    {.name = "cleanPodPolicy",
     .kind = FIELD_ENUM,
     MEMBER(run_policy, clean_pod_policy),
     LONE,
     .words = clean_pod_policy_words,
     .fallback = "Running",
     .description = "Which pods are removed when the job ends: those still Running, All, or None."},
    {.name = "restartScope",
     .kind = FIELD_ENUM,
     MEMBER(run_policy, restart_scope),
     LONE,
     .words = restart_scope_words,
     .fallback = "Auto",
     .description =
         "What is restarted after a failure: the Pod (the crew waits in place), the whole Job, or what suits the "
         "framework (Auto)."},
    {.name = "stragglerReplacement",
     .kind = FIELD_OBJECT,
     MEMBER(run_policy, straggler_replacement),
     LONE,
     .flags = FIELD_MUTABLE | FIELD_MUTABLE_INSIDE,
     .type = &straggler_replacement_type,
     .description = "Jobs with coxswain: a worker that takes much longer than the others for its part of a step is "
                    "ended, so that it can save, and replaced on another node. Default: stragglers are only named, in "
                    "the condition Straggling."},
    {.name = "disruptionBudget",
     .kind = FIELD_OBJECT,
     MEMBER(run_policy, disruption_budget),
     COMPANION(run_policy, has_disruption_budget),
     .type = &disruption_budget_type,
     .description = "The job gets a PodDisruptionBudget: a drain of nodes waits rather than evict pods that it needs. "
                    "Pods that are not ready may always be evicted. Default: none, and evicted pods are replaced."},
    {.name = "gang",
     .kind = FIELD_OBJECT,
     MEMBER(run_policy, gang),
     LONE,
     .type = &gang_type,
     .fallback = "{}",
     .description = "All pods are placed together or none is. Default: each by itself."},
};
static OBJECT_TYPE(run_policy_type, "Run policy", run_policy_fields, .base = &class_run_policy_type);

#define ROLE(role_name_here, which_role, role_type_here, words_about_it)                                               \
    {                                                                                                                  \
        .name = role_name_here, .kind = FIELD_OBJECT, .offset = 0, .size = sizeof(struct training_job),                \
        COMPANION(training_job, roles[which_role].given), .flags = FIELD_MUTABLE_INSIDE, .type = role_type_here,       \
        .description = words_about_it                                                                                  \
    }
#define FRAMEWORK(section_name, which_framework, section_type, words_about_it)                                         \
    {                                                                                                                  \
        .name = section_name, .kind = FIELD_OBJECT, MEMBER(training_job, document),                                    \
        COMPANION(training_job, sections[which_framework]), .type = section_type, .description = words_about_it        \
    }

#define CLASS_REFERENCE(owner, at)                                                                                     \
    {.name = "kind",                                                                                                   \
     .kind = FIELD_ENUM,                                                                                               \
     MEMBER(owner, at kind),                                                                                           \
     LONE,                                                                                                             \
     .words = training_class_kind_words,                                                                               \
     .fallback = CLUSTER_TRAINING_CLASS_KIND,                                                                          \
     .description = "Kind of the class: ClusterTrainingClass, or TrainingClass, which is in the job's namespace."},    \
    {                                                                                                                  \
        .name = "name", .kind = FIELD_STRING, MEMBER(owner, at name), LONE, .flags = FIELD_REQUIRED, RANGE(1, 253),    \
        FORMAT(DOTTED_NAME), .description = "Name of the class."                                                       \
    }

static const struct field class_reference_fields[] = {
    CLASS_REFERENCE(training_class_reference, ),
};
static OBJECT_TYPE(class_reference_type, "Training class of a job", class_reference_fields);

static const struct field training_job_spec_fields[] = {
    {.name = "suspend",
     .kind = FIELD_BOOLEAN,
     MEMBER(training_job, suspend),
     LONE,
     .flags = FIELD_MUTABLE,
     .fallback = "false",
     .description = "Remove all pods and wait; set it back to false to go on from the last checkpoint."},
    {.name = "managedBy",
     .kind = FIELD_STRING,
     MEMBER(training_job, managed_by),
     LONE,
     RANGE(1, 316),
     FORMAT(QUALIFIED_NAME),
     .description =
         "Name of the controller that runs this job: that of an operator's --controller-name, or of another program. "
         "Operators of other names leave the job alone. Default: coxswain.dev/operator, the name of an operator "
         "without that option. With kueue.x-k8s.io/multikueue that operator creates the job's Workload, by which "
         "Kueue sends the job to another cluster."},
    {.name = "trainingClass",
     .kind = FIELD_OBJECT,
     MEMBER(training_job, training_class),
     LONE,
     .type = &class_reference_type,
     .description = "The class whose defaults the job takes where it says nothing itself. They are copied into the "
                    "status before anything is created; until the class is there, the job waits."},
    {.name = "image",
     .kind = FIELD_STRING,
     MEMBER(training_job, image),
     LONE,
     .flags = FIELD_MUTABLE_SUSPENDED,
     RANGE(1, TEXT_MAX_LENGTH),
     FORMAT(IMAGE),
     .description =
         "Container image of all roles. Default: the operator's worker image; required for pytorch, tensorflow and "
         "jax."},
    {.name = "workers",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct training_job),
     LONE,
     .flags = FIELD_MUTABLE_INSIDE,
     .type = &workers_type,
     .fallback = "{}",
     .description = "The pods that train, how many, and between which bounds that may change."},
    ROLE("chief", ROLE_CHIEF, &chief_type,
         "A pod of its own that leads the crew, and trains unless there are parameter servers. Default: worker 0 "
         "leads."),
    ROLE("parameterServers", ROLE_PS, &servers_type,
         "The pods that keep the variables, for strategy ParameterServer and for TensorFlow."),
    ROLE("evaluator", ROLE_EVALUATOR, &evaluator_type, "A pod that scores checkpoints beside the training."),
    DEVICES_AND_STORAGE(training_job, document.),
    FRAMEWORK("coxswain", FRAMEWORK_COXSWAIN, &coxswain_type,
              "Training by our own worker. Exactly one of coxswain, pytorch, tensorflow and jax is given."),
    FRAMEWORK("pytorch", FRAMEWORK_PYTORCH, &foreign_type,
              "The image runs PyTorch: pods get PET_* and MASTER_ADDR. There may be a chief, which is the master."),
    FRAMEWORK("tensorflow", FRAMEWORK_TENSORFLOW, &foreign_type,
              "The image runs TensorFlow: pods get TF_CONFIG with the roles that are given."),
    FRAMEWORK("jax", FRAMEWORK_JAX, &foreign_type,
              "The image runs JAX: pods get JAX_COORDINATOR_ADDRESS and its like. There are workers only."),
    {.name = "runPolicy",
     .kind = FIELD_OBJECT,
     MEMBER(training_job, run_policy),
     LONE,
     .flags = FIELD_MUTABLE_INSIDE,
     .type = &run_policy_type,
     .fallback = "{}",
     .description = "How the job is run, retried and cleaned up."},
};
OBJECT_TYPE(training_job_spec_type, "TrainingJob spec", training_job_spec_fields);

/* ---------------------------------------------------------------- training class */

/* None of these has a default in the definition of TrainingJob: the API server would fill it in before the operator could see that
 * the job left it to its class. */
static const struct field training_class_spec_fields[] = {
    {.name = "image",
     .kind = FIELD_STRING,
     SCHEMA_ONLY,
     RANGE(1, TEXT_MAX_LENGTH),
     FORMAT(IMAGE),
     .description = "Container image of all roles of a job that names none."},
    {.name = "queueName",
     .kind = FIELD_STRING,
     SCHEMA_ONLY,
     RANGE(1, NAME_MAX_LENGTH),
     FORMAT(DOTTED_NAME),
     .description = "The LocalQueue of Kueue, in the job's namespace, for jobs without the label "
                    "kueue.x-k8s.io/queue-name."},
    {.name = "template",
     .kind = FIELD_OPAQUE,
     SCHEMA_ONLY,
     .description = "A pod template with defaults for the templates of all roles of the job: tolerations, affinity, "
                    "variables, resources. The container named trainer, else the first one, trains."},
    {.name = "storage",
     .kind = FIELD_LIST,
     SCHEMA_ONLY,
     RANGE(0, 16),
     .type = &storage_type,
     .description = "Named volumes that every pod mounts, beside those of the job. Each has exactly one source."},
    {.name = "runPolicy",
     .kind = FIELD_OBJECT,
     SCHEMA_ONLY,
     .type = &class_run_policy_type,
     .description = "Deadlines and other limits of jobs that give none."},
};
OBJECT_TYPE(training_class_spec_type, "Spec of a training class", training_class_spec_fields);

/* ---------------------------------------------------------------- status */

#define SHOWN_COUNTER(field_name, words_about_it)                                                                      \
    {                                                                                                                  \
        .name = field_name, .kind = FIELD_INTEGER, SCHEMA_ONLY, RANGE(0, INT64_MAX), .description = words_about_it     \
    }

/* Indices of a role's pods, such as 0-3,7. */
#define SHOWN_INDICES(field_name, words_about_them)                                                                    \
    {                                                                                                                  \
        .name = field_name, .kind = FIELD_STRING, SCHEMA_ONLY, RANGE(1, 4096), .description = words_about_them         \
    }

static const struct field restarts_fields[] = {
    COUNTER("total", job_status, restart_count, "Events that led to the replacement of a pod."),
    COUNTER("failures", job_status, restarts.failures, "Failures of the application; these spend backoffLimit."),
    COUNTER("disruptions", job_status, restarts.disruptions, "Preemptions, drains and lost nodes."),
    COUNTER("outOfMemory", job_status, restarts.out_of_memory,
            "Containers killed at their memory limit; these spend backoffLimit."),
    COUNTER("ignored", job_status, restarts.ignored,
            "Failures that a rule of failurePolicy ignores, and failures that a later disruption explained."),
};
static OBJECT_TYPE(restarts_type, "Restarts", restarts_fields);

/* metav1.Condition of Kubernetes, with its bounds. */
static const char *const condition_status_words[] = {"True", "False", "Unknown", NULL};

static const struct field condition_fields[] = {
    {.name = "type",
     .kind = FIELD_ENUM,
     SCHEMA_ONLY,
     .flags = FIELD_REQUIRED | FIELD_OPEN,
     RANGE(1, 316),
     FORMAT(CONDITION_TYPE),
     .words = condition_type_words,
     .description = "Name of the condition. Other controllers may add types of their own."},
    {.name = "status",
     .kind = FIELD_ENUM,
     SCHEMA_ONLY,
     .flags = FIELD_REQUIRED,
     .words = condition_status_words,
     .description = "True, False or Unknown."},
    {.name = "observedGeneration",
     .kind = FIELD_INTEGER,
     SCHEMA_ONLY,
     RANGE(0, INT64_MAX),
     .description = "The generation of the spec that the condition was set from."},
    {.name = "lastTransitionTime",
     .kind = FIELD_TIME,
     SCHEMA_ONLY,
     .flags = FIELD_REQUIRED,
     .description = "When the status last changed."},
    {.name = "reason",
     .kind = FIELD_STRING,
     SCHEMA_ONLY,
     .flags = FIELD_REQUIRED,
     RANGE(1, 1024),
     FORMAT(REASON),
     .description = "One CamelCase word for programs."},
    {.name = "message",
     .kind = FIELD_STRING,
     SCHEMA_ONLY,
     .flags = FIELD_REQUIRED,
     RANGE(0, 32768),
     .description = "A sentence for people; it may be empty."},
};
OBJECT_TYPE(condition_type, "Condition", condition_fields, .map_key = "type");

#define ROLE_KEY(words_about_it)                                                                                       \
    {                                                                                                                  \
        .name = "role", .kind = FIELD_ENUM, SCHEMA_ONLY, .flags = FIELD_REQUIRED | FIELD_OPEN,                         \
        RANGE(1, NAME_MAX_LENGTH), .words = role_words, .description = words_about_it                                  \
    }

static const struct field replica_status_fields[] = {
    ROLE_KEY("The role that is counted."),
    SHOWN_COUNTER("active", "Pods that exist and have neither succeeded nor failed."),
    SHOWN_COUNTER("ready", "Pods that are ready."),
    SHOWN_COUNTER("succeeded", "Pods that succeeded."),
    SHOWN_COUNTER("failed", "Pods that failed."),
};
static OBJECT_TYPE(replica_status_type, "Replica status", replica_status_fields, .map_key = "role");

static const struct field metric_fields[] = {
    {.name = "name",
     .kind = FIELD_STRING,
     MEMBER(progress_metric, name),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, NAME_MAX_LENGTH),
     .description = "Name of the metric, such as loss or validationAccuracy."},
    {.name = "value",
     .kind = FIELD_STRING,
     MEMBER(progress_metric, value),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(0, 32),
     .description = "Its last value, a decimal string."},
    NUMBER("step", progress_metric, step, "The step after which it was measured."),
};
static OBJECT_TYPE(metric_type, "Metric", metric_fields, .size = sizeof(struct progress_metric), .map_key = "name");

static const struct field progress_fields[] = {
    NUMBER("step", progress, step, "Optimizer steps applied so far."),
    NUMBER("totalSteps", progress, total_steps, "Optimizer steps of the whole run."),
    NUMBER("percent", progress, percent, "Share of the steps that is done."),
    NUMBER("epoch", progress, data_epoch, "Pass through the data, from 0."),
    {.name = "metrics",
     .kind = FIELD_LIST,
     MEMBER(progress, metrics),
     COMPANION(progress, metric_count),
     .flags = FIELD_INLINE,
     RANGE(0, 16),
     .type = &metric_type,
     .description = "Last values of the loss and other metrics."},
    TEXT("examplesPerSecond", progress, examples_per_second, 32,
         "Throughput of the whole crew while it runs, a decimal string."),
    NUMBER("secondsRemaining", progress, seconds_remaining,
           "Estimate of the time to the last step while the crew runs."),
    NUMBER("lastCheckpointStep", progress, last_checkpoint_step, "Step of the newest checkpoint on storage."),
    TEXT("goodput", progress, goodput, 32, "Share of the time that went into steps that were kept, from 0 to 1."),
    TIME("updatedAt", progress, updated_at_ms, "When the chief reported this."),
};
static OBJECT_TYPE(progress_type, "Progress", progress_fields);

/* The operator's memory: plan.h says what has to be in it before what is done. */
static const struct field controller_role_fields[] = {
    ROLE_KEY("The role whose pods these are."),
    SHOWN_INDICES("pending",
                  "Indices whose pod of this incarnation is still to be created, such as 0-3,7. Written before any of "
                  "them is created; what is missing and not listed was lost."),
    SHOWN_INDICES("completed",
                  "Indices whose pod has ended with 0 by itself, such as 0-3,7. That stays so when the pod is removed, "
                  "until the crew starts over."),
    SHOWN_INDICES("restarting",
                  "Indices whose pod was lost and whose successor has not been ready yet, such as 0-3,7."),
    SHOWN_INDICES("backingOff", "Those of pending whose pod ended so soon that its successor waits, such as 0-3,7."),
    {.name = "backoffUntil",
     .kind = FIELD_TIME,
     SCHEMA_ONLY,
     .description = "When the pods of backingOff may be created."},
};
static OBJECT_TYPE(controller_role_type, "Controller state of a role", controller_role_fields, .map_key = "role");

static const struct field node_failure_fields[] = {
    TEXT("node", node_failure, node, 253, "Name of the node."),
    {.name = "at",
     .kind = FIELD_TIME,
     MEMBER(node_failure, at_ms),
     LONE,
     .flags = FIELD_PRECISE,
     .description = "When the failure was counted."},
    TEXT("reason", node_failure, reason, TEXT_MAX_LENGTH, "Why the node is blamed, and the pod that failed."),
    {.name = "sure",
     .kind = FIELD_BOOLEAN,
     MEMBER(node_failure, sure),
     LONE,
     .description = "This failure alone suffices to avoid the node."},
};
static OBJECT_TYPE(node_failure_type, "Node failure", node_failure_fields, .size = sizeof(struct node_failure));

static const struct field replaced_straggler_fields[] = {
    TEXT("pod", straggler_replacement, pod, 253, "Name of the pod."),
    {.name = "at",
     .kind = FIELD_TIME,
     MEMBER(straggler_replacement, at_ms),
     LONE,
     .flags = FIELD_PRECISE,
     .description = "When it was decided to replace the pod."},
};
static OBJECT_TYPE(replaced_straggler_type, "Replaced straggler", replaced_straggler_fields,
                   .size = sizeof(struct straggler_replacement));

static const struct field controller_state_fields[] = {
    COUNTER("attempt", job_status, attempt, "A number that is raised when all pods of the job start over."),
    COUNTER("incarnation", job_status, incarnation,
            "A number that is raised before pods are created: a process with a lower number can neither join the "
            "others nor save checkpoints."),
    {.name = "chargedAt",
     .kind = FIELD_TIME,
     MEMBER(job_status, charged_ms),
     LONE,
     .flags = FIELD_PRECISE,
     .description =
         "When the last failure was counted that a disruption of the same crew may explain afterwards: within "
         "60 seconds it is counted as a disruption instead."},
    NUMBER("chargedAttempt", job_status, charged_attempt, "The attempt whose crew had that failure."),
    {.name = "progressedAt",
     .kind = FIELD_TIME,
     MEMBER(job_status, progressed_ms),
     LONE,
     .flags = FIELD_PRECISE,
     .description = "Jobs with progressDeadlineSeconds: when a new step was last seen, or, before the first step, when "
                    "all pods were first seen to run. The deadline counts from then."},
    TIME("chiefFinishTime", job_status, chief_finish_ms,
         "Elastic PyTorch jobs: when the chief, or worker 0, exited with 0. A worker that starts later does not "
         "take part."),
    COUNTER("suspendedMilliseconds", job_status, suspended_ms,
            "Time spent suspended, or without pods while no operator ran, which the deadline leaves out."),
    NUMBER(
        "recoveredRestarts", job_status, recovered_restarts,
        "The value of restarts.total before the last event that came after ten good minutes. Only later ones lengthen "
        "the back-off."),
    NUMBER("recoveredFailures", job_status, recovered_failures,
           "The failures among them, those at the memory limit included."),
    {.name = "backoffUntil",
     .kind = FIELD_TIME,
     MEMBER(job_status, backoff_until_ms),
     LONE,
     .flags = FIELD_PRECISE,
     .description = "The latest backoffUntil of the roles."},
    NUMBER("certificateGeneration", job_status, certificate_generation,
           "Encryption TLS: the number of the crew's newest certificate, from 0."),
    {.name = "certificateFrom",
     .kind = FIELD_TIME,
     MEMBER(job_status, certificate_from_ms),
     LONE,
     .flags = FIELD_PRECISE,
     .description = "When the crew begins to present that certificate."},
    {.name = "noticeSince",
     .kind = FIELD_TIME,
     MEMBER(job_status, notice_since_ms),
     LONE,
     .flags = FIELD_PRECISE,
     .description = "Since when the notification about the job's end waits to be delivered to the operator's sink."},
    {.name = "nodeFailures",
     .kind = FIELD_LIST,
     MEMBER(job_status, node_failures),
     COMPANION(job_status, node_failure_count),
     RANGE(0, 32),
     .type = &node_failure_type,
     .description = "The newest failures for which a node is blamed, oldest first. They decide which nodes new pods "
                    "avoid."},
    {.name = "stragglerReplacements",
     .kind = FIELD_LIST,
     MEMBER(job_status, straggler_replacements),
     COMPANION(job_status, straggler_replacement_count),
     RANGE(0, STRAGGLER_REPLACEMENTS_MAX + 1),
     .type = &replaced_straggler_type,
     .description = "Jobs with stragglerReplacement: the pods of the last hour that are deleted because they were "
                    "stragglers, oldest first. A pod is deleted once it is listed."},
    NUMBER(
        "admittedWorkers", job_status, admitted_workers,
        "Elastic jobs in a queue of Kueue: to how many workers the queue has admitted the job, until it is suspended "
        "or evicted."),
    {.name = "roles",
     .kind = FIELD_LIST,
     SCHEMA_ONLY,
     RANGE(0, 8),
     .type = &controller_role_type,
     .description = "Indices of pods, by role."},
};
static OBJECT_TYPE(controller_state_type, "Controller state", controller_state_fields);

static const struct field pinned_class_fields[] = {
    CLASS_REFERENCE(pinned_class, ),
    TEXT("uid", pinned_class, uid, NAME_MAX_LENGTH, "UID of the class."),
    NUMBER("generation", pinned_class, generation, "The generation of the class that was copied."),
    {.name = "defaults",
     .kind = FIELD_OPAQUE,
     MEMBER(pinned_class, defaults),
     LONE,
     .description = "The spec of the class in that generation. The job keeps it when the class is changed or deleted."},
};
static OBJECT_TYPE(pinned_class_type, "Pinned training class", pinned_class_fields);

static const struct field training_job_status_fields[] = {
    COUNTER("observedGeneration", job_status, observed_generation,
            "The generation of the spec that this status was made from."),
    {.name = "conditions",
     .kind = FIELD_LIST,
     SCHEMA_ONLY,
     RANGE(0, JOB_CONDITIONS_MAX),
     .type = &condition_type,
     .description = "State of the job. The operator lists its conditions in a fixed order, before those of others: "
                    "Succeeded, Failed, Suspended, Running, Restarting, Scheduled, Created, CheckpointsFailing, "
                    "JoinBlocked, AvoidingNodes, Straggling. The first that is True is the job's state."},
    TEXT("readySummary", job_status, ready_summary, 32, "Ready pods of those required, such as 3/4."),
    COUNTER("workers", job_status, workers, "The current number of workers; the scale subresource shows it."),
    TEXT("selector", job_status, selector, TEXT_MAX_LENGTH, "Label selector of the workers' pods, for autoscalers."),
    {.name = "restarts",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct job_status),
     LONE,
     .type = &restarts_type,
     .description = "How many times pods had to be replaced, in total and by cause."},
    {.name = "startTime",
     .kind = FIELD_TIME,
     MEMBER(job_status, start_ms),
     LONE,
     .flags = FIELD_PRECISE,
     .description = "When the first pod was created."},
    {.name = "completionTime",
     .kind = FIELD_TIME,
     MEMBER(job_status, completion_ms),
     LONE,
     .flags = FIELD_PRECISE,
     .description = "When the job succeeded or failed."},
    {.name = "replicaStatuses",
     .kind = FIELD_LIST,
     SCHEMA_ONLY,
     RANGE(0, 8),
     .type = &replica_status_type,
     .description = "Pods by role."},
    {.name = "progress",
     .kind = FIELD_OBJECT,
     MEMBER(job_status, progress),
     LONE,
     .type = &progress_type,
     .description = "Progress of the training, as the chief reports it."},
    {.name = "trainingClass",
     .kind = FIELD_OBJECT,
     MEMBER(job_status, training_class),
     LONE,
     .type = &pinned_class_type,
     .description = "The class that spec.trainingClass names, as it was when the job was created."},
    {.name = "controllerState",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct job_status),
     LONE,
     .type = &controller_state_type,
     .description = "Data that the operator needs after a restart. It is not part of the API: clients should ignore "
                    "it, only the operator writes it, and its form may change in any version."},
};
OBJECT_TYPE(training_job_status_type, "TrainingJob status", training_job_status_fields);

/* ---------------------------------------------------------------- cursor */

struct field_cursor field_first(const struct object_type *object)
{
    const struct object_type *start = object->base ? object->base : object;
    return (struct field_cursor){
        .field = start->fields,
        .shift = object->base ? object->base_offset : 0,
        .object = object,
        .left = start->field_count,
        .after = object->base ? object : NULL,
    };
}

void field_next(struct field_cursor *cursor)
{
    if (--cursor->left > 0) {
        cursor->field++;
        return;
    }
    const struct object_type *after = cursor->after;
    cursor->field = after ? after->fields : NULL;
    cursor->left = after ? after->field_count : 0;
    cursor->shift = 0;
    cursor->after = NULL;
}

#define FIELDS_COMPARED_MAX 128

const char *field_nearest(const struct object_type *object, const char *name)
{
    const char *names[FIELDS_COMPARED_MAX];
    size_t count = 0;
    for (struct field_cursor at = field_first(object); at.field && count < FIELDS_COMPARED_MAX; field_next(&at))
        names[count++] = at.field->name;
    return nearest_word(name, names, count);
}

const struct field *field_find(const struct object_type *object, const char *name)
{
    for (struct field_cursor at = field_first(object); at.field; field_next(&at))
        if (strcmp(at.field->name, name) == 0)
            return at.field;
    return NULL;
}
