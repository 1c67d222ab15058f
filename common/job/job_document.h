/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and prints the job document, the part of a TrainingJob that Coxswain's worker reads: strategy, model, data, training, checkpoints.
 * The operator passes the document to the worker as JSON in COXSWAIN_JOB. Names, bounds, defaults and descriptions of the fields are in
 * fields.c only; the CRD, docs/api.md and the parser are derived from there. Strings and lists are in the document's own arena and are
 * freed by job_document_release.
 *
 * A number that the user did not give and that has no static default is FIELD_UNSET (DECIMAL_UNSET for a decimal). An absent string is
 * NULL, an absent list has count 0.
 */
#ifndef COXSWAIN_JOB_DOCUMENT_H
#define COXSWAIN_JOB_DOCUMENT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/arena.h"
#include "common/json.h"

#define FIELD_UNSET INT64_MIN
#define DECIMAL_UNSET NAN /* decimal strings ("3e-4") are parsed to double */

/* Closed enums: C name, the word in the manifest. The empty word stands for "not given" and is never offered. */
#define FRAMEWORKS(X)                                                                                                  \
    X(FRAMEWORK_COXSWAIN, "Coxswain")                                                                                  \
    X(FRAMEWORK_TENSORFLOW, "TensorFlow") X(FRAMEWORK_PYTORCH, "PyTorch") X(FRAMEWORK_JAX, "JAX")
#define ENCRYPTIONS(X) X(ENCRYPTION_NONE, "None") X(ENCRYPTION_TLS, "TLS")
#define STRATEGY_TYPES(X)                                                                                              \
    X(STRATEGY_ONE_DEVICE, "OneDevice")                                                                                \
    X(STRATEGY_MIRRORED, "Mirrored")                                                                                   \
    X(STRATEGY_MULTI_WORKER_MIRRORED, "MultiWorkerMirrored")                                                           \
    X(STRATEGY_PARAMETER_SERVER, "ParameterServer")                                                                    \
    X(STRATEGY_CENTRAL_STORAGE, "CentralStorage")                                                                      \
    X(STRATEGY_PEER_TO_PEER, "PeerToPeer")                                                                             \
    X(STRATEGY_PIPELINE, "Pipeline")
#define COLLECTIVE_TYPES(X)                                                                                            \
    X(COLLECTIVE_AUTO, "Auto")                                                                                         \
    X(COLLECTIVE_RING, "Ring")                                                                                         \
    X(COLLECTIVE_HIERARCHICAL, "Hierarchical")                                                                         \
    X(COLLECTIVE_REDUCE_TO_ONE, "ReduceToOne")                                                                         \
    X(COLLECTIVE_NCCL, "NCCL")
#define PARAMETER_SERVER_MODES(X)                                                                                      \
    X(PARAMETER_SERVER_NOT_SAID, "")                                                                                   \
    X(PARAMETER_SERVER_ASYNC, "Async")                                                                                 \
    X(PARAMETER_SERVER_BOUNDED_STALENESS, "BoundedStaleness")                                                          \
    X(PARAMETER_SERVER_SYNCHRONOUS, "Synchronous")

#define DEVICE_TYPES(X)                                                                                                \
    X(DEVICE_TYPE_CPU, "CPU") X(DEVICE_TYPE_GPU, "GPU") X(DEVICE_TYPE_AUTO, "Auto") X(DEVICE_TYPE_TPU, "TPU")
#define DATA_FORMATS(X)                                                                                                \
    X(DATA_FORMAT_IDX, "IDX")                                                                                          \
    X(DATA_FORMAT_BYTES, "Bytes")                                                                                      \
    X(DATA_FORMAT_SYNTHETIC, "Synthetic")                                                                              \
    X(DATA_FORMAT_CIFAR10, "CIFAR10")                                                                                  \
    X(DATA_FORMAT_NPY, "NPY")                                                                                          \
    X(DATA_FORMAT_TOKENS, "Tokens")                                                                                    \
    X(DATA_FORMAT_TFRECORD, "TFRecord") X(DATA_FORMAT_CSV, "CSV") X(DATA_FORMAT_IMAGE_FOLDER, "ImageFolder")
#define DATA_MISSINGS(X)                                                                                               \
    X(DATA_MISSING_NOT_SAID, "") X(DATA_MISSING_REFUSE, "Refuse") X(DATA_MISSING_DROP_ROW, "DropRow")
#define IMAGE_RESIZES(X)                                                                                               \
    X(IMAGE_RESIZE_NOT_SAID, "") X(IMAGE_RESIZE_STRETCH, "Stretch") X(IMAGE_RESIZE_CENTER_CROP, "CenterCrop")
#define OPTIMIZER_TYPES(X) X(OPTIMIZER_SGD, "SGD") X(OPTIMIZER_ADAMW, "AdamW")
#define SCHEDULE_TYPES(X)                                                                                              \
    X(SCHEDULE_CONSTANT, "Constant")                                                                                   \
    X(SCHEDULE_COSINE, "Cosine")                                                                                       \
    X(SCHEDULE_LINEAR, "Linear")
#define SCALE_LEARNING_RATES(X) X(SCALE_NOT_SAID, "") X(SCALE_LINEAR, "Linear") X(SCALE_NONE, "None")
#define PRECISIONS(X)                                                                                                  \
    X(PRECISION_FLOAT32, "Float32")                                                                                    \
    X(PRECISION_TF32, "TF32")                                                                                          \
    X(PRECISION_BFLOAT16, "BFloat16")                                                                                  \
    X(PRECISION_FLOAT16, "Float16")
#define DETERMINISMS(X) X(DETERMINISM_CREW, "Crew") X(DETERMINISM_RUN, "Run")
#define LAYER_TYPES(X)                                                                                                 \
    X(LAYER_DENSE, "Dense")                                                                                            \
    X(LAYER_CONV2D, "Conv2D")                                                                                          \
    X(LAYER_MAX_POOL, "MaxPool")                                                                                       \
    X(LAYER_AVERAGE_POOL, "AveragePool")                                                                               \
    X(LAYER_RELU, "ReLU")                                                                                              \
    X(LAYER_GELU, "GELU")                                                                                              \
    X(LAYER_TANH, "Tanh")                                                                                              \
    X(LAYER_FLATTEN, "Flatten")                                                                                        \
    X(LAYER_LAYER_NORM, "LayerNorm")                                                                                   \
    X(LAYER_EMBEDDING, "Embedding")                                                                                    \
    X(LAYER_ATTENTION, "Attention")                                                                                    \
    X(LAYER_ADD, "Add")                                                                                                \
    X(LAYER_BATCH_NORM, "BatchNorm")                                                                                   \
    X(LAYER_SHORTCUT, "Shortcut")                                                                                      \
    X(LAYER_GLOBAL_AVERAGE_POOL, "GlobalAveragePool")                                                                  \
    X(LAYER_DROPOUT, "Dropout")                                                                                        \
    X(LAYER_CONCAT, "Concat")
#define BATCH_STATISTICS(X) X(STATISTICS_NOT_SAID, "") X(STATISTICS_SHARD, "Shard") X(STATISTICS_GLOBAL, "Global")
#define LOSSES(X) X(LOSS_SOFTMAX_CROSS_ENTROPY, "SoftmaxCrossEntropy") X(LOSS_MEAN_SQUARED_ERROR, "MeanSquaredError")
#define EXPORT_WEIGHTS(X) X(EXPORT_LAST, "Last") X(EXPORT_BEST, "Best")
#define EXPORT_NAMES(X) X(EXPORT_OWN_NAMES, "Coxswain") X(EXPORT_HUGGING_FACE_NAMES, "HuggingFace")
#define EXPORT_FORMATS(X) X(EXPORT_SAFETENSORS, "Safetensors")
#define PRESETS(X)                                                                                                     \
    X(PRESET_NONE, "")                                                                                                 \
    X(PRESET_MLP, "mlp")                                                                                               \
    X(PRESET_LENET, "lenet")                                                                                           \
    X(PRESET_RESNET20, "resnet20")                                                                                     \
    X(PRESET_RESNET50, "resnet50")                                                                                     \
    X(PRESET_GPT_BYTES, "gpt-bytes")                                                                                   \
    X(PRESET_GPT2_124M, "gpt2-124m")                                                                                   \
    X(PRESET_GPT2_355M, "gpt2-355m")                                                                                   \
    X(PRESET_GPT2_774M, "gpt2-774m")                                                                                   \
    X(PRESET_GPT2_1558M, "gpt2-1558m")
#define ON_PREEMPTIONS(X) X(ON_PREEMPTION_DISCARD, "Discard") X(ON_PREEMPTION_SAVE, "Save")

#define X(name, text) name,
enum framework { FRAMEWORKS(X) FRAMEWORK_COUNT };
enum encryption { ENCRYPTIONS(X) };
enum strategy_type { STRATEGY_TYPES(X) };
enum collective_type { COLLECTIVE_TYPES(X) };
enum parameter_server_mode { PARAMETER_SERVER_MODES(X) };
enum device_type { DEVICE_TYPES(X) };
enum data_format { DATA_FORMATS(X) };
enum image_resize { IMAGE_RESIZES(X) };
enum data_missing { DATA_MISSINGS(X) };
enum optimizer_type { OPTIMIZER_TYPES(X) };
enum schedule_type { SCHEDULE_TYPES(X) };
enum scale_learning_rate { SCALE_LEARNING_RATES(X) };
enum precision { PRECISIONS(X) };
enum determinism { DETERMINISMS(X) };
enum layer_type { LAYER_TYPES(X) };
enum batch_statistics { BATCH_STATISTICS(X) };
enum loss_type { LOSSES(X) };
enum export_format { EXPORT_FORMATS(X) };
enum export_weights { EXPORT_WEIGHTS(X) };
enum export_names { EXPORT_NAMES(X) };
enum preset { PRESETS(X) };
#undef X

#define INPUT_RANK_MAX 3 /* of an example: H W C */
#define LAYER_INPUTS_MAX 8
#define STAGES_MAX 64
#define TRAINERS_MAX 128     /* members of a crew that train: chief and workers */
#define CREW_SERVERS_MAX 64  /* ps of a crew */
#define SHARDS_MAX 4096      /* logical shards of a batch */
#define SERVED_SHARDS_MAX 64 /* the same for ParameterServer with mode Synchronous */

struct strategy_spec {
    enum strategy_type type;
    enum collective_type collective;
    int64_t stages;        /* Pipeline; FIELD_UNSET: workers x devices */
    int64_t micro_batches; /* Pipeline, of each replica; FIELD_UNSET: 4 x stages */
    bool recompute;
    /* ParameterServer: */
    enum parameter_server_mode mode;            /* NOT_SAID: Async */
    int64_t staleness;                          /* BoundedStaleness; FIELD_UNSET: STALENESS_DEFAULT */
    int64_t backup_workers;                     /* Synchronous and BoundedStaleness; FIELD_UNSET: none */
    bool sharded_optimizer;                     /* MultiWorkerMirrored */
    int64_t local_steps;                        /* MultiWorkerMirrored; FIELD_UNSET: none, every step is summed */
    double outer_learning_rate, outer_momentum; /* with local_steps; DECIMAL_UNSET: 0.7 and 0.9 */
};
#define STALENESS_DEFAULT 4

struct devices_spec {
    enum device_type type;
    int64_t count;             /* per worker */
    const char *resource_name; /* extended resource that a device is asked for by; NULL: the usual one of its type */
    int64_t slices;            /* of TPUs, into which the workers of a foreign job are divided; FIELD_UNSET: one */
    const char *plugin;        /* path of the PJRT plugin for XLA; NULL: as the image says, for programs and TPUs */
};

struct layer_spec {
    const char *name; /* default: <type><position> */
    enum layer_type type;
    const char *inputs[LAYER_INPUTS_MAX]; /* names; default: the layer before */
    unsigned input_count;
    int64_t units;                     /* Dense, Embedding: width */
    int64_t filters;                   /* Conv2D, Shortcut */
    int64_t kernel;                    /* Conv2D: square side */
    int64_t stride;                    /* Conv2D, pools, Shortcut */
    int64_t padding;                   /* Conv2D, pools: zeros on each side */
    int64_t size;                      /* pools: square side; Embedding: vocabulary */
    int64_t heads;                     /* attention */
    bool bias;                         /* Dense, Conv2D */
    int64_t device;                    /* Pipeline: stage */
    int64_t devices[LAYER_INPUTS_MAX]; /* Pipeline, Dense: stages that have a slice of its units each */
    unsigned device_count;             /* 0: it is whole */
    double momentum;                   /* batchNorm: the share of a batch in the running values; 0: 0.1 */
    double rate;                       /* dropout */
    enum batch_statistics statistics;  /* batchNorm */
    const char *weights_of;            /* Dense: the Embedding whose table it multiplies by; NULL: its own weight */
};

struct model_spec {
    enum preset preset;
    const char *program_storage, *program_path; /* the path NULL: no program; the storage NULL: it is absolute */
    int64_t input_shape[INPUT_RANK_MAX];        /* without the batch: H W C */
    unsigned input_rank;
    struct layer_spec *layers;
    unsigned layer_count;
    enum loss_type loss;
    /* Sizes of the presets that have them; below 1 (FIELD_UNSET): the preset's own. */
    int64_t width, depth, heads, context, vocabulary, classes;
    double dropout;                   /* of the presets that have it */
    enum batch_statistics statistics; /* of every batchNorm of the presets that have some; not said: Shard */
};

/* The file of one of a program's inputs. */
#define DATA_INPUTS_MAX 16
#define DATA_INPUT_NAME_MAX 63
struct data_input {
    const char *name, *file;
};

/* Paths are relative to the storage, or absolute when no storage is named. */
struct data_files {
    const char *images; /* IDX, NPY: a file; ImageFolder: a folder, NULL: that of the data */
    const char *labels; /* IDX, NPY */
    const char *text;   /* Bytes */
    int64_t first;      /* use examples [first, …); FIELD_UNSET: from 0 */
    int64_t last;       /* validation: the last n examples of train's files, which train then leaves out */
    const char *files;  /* CIFAR10, Tokens, TFRecord, CSV: one file, or several by a * in the last part of the path */
    struct data_input *inputs; /* NPY, instead of images */
    unsigned input_count;
    int64_t sample; /* validation: so many examples from all over train's files, which train then leaves out */
};

/* Random changes of the training images, made anew in each epoch; both 0: none. */
struct augmentation_spec {
    bool horizontal_flip; /* half of them are mirrored */
    int64_t crop_padding; /* zeros on each side, of which a piece of the image's own size is cut */
};

#define DATA_SKIPPED_MAX 256

struct data_spec {
    enum data_format format;
    const char *storage;
    const char *path; /* the folder in it that the files' paths start from; NULL: its root */
    struct data_files train;
    struct data_files validation;
    int64_t examples;                          /* synthetic */
    const char *image_feature, *label_feature; /* TFRecord; NULL: "image", "label" */
    struct augmentation_spec augmentation;
    bool standardize;                   /* NPY, CSV */
    const char *label_column;           /* CSV: a name or a number from 1 on; NULL: the last one that is not skipped */
    const char *const *skipped_columns; /* CSV: the same, of columns that the model does not get */
    unsigned skipped_column_count;
    enum data_missing missing; /* CSV; not said: Refuse */
    enum image_resize resize;  /* ImageFolder; not said: Stretch */
};

struct optimizer_spec {
    enum optimizer_type type;
    double learning_rate;
    double momentum;     /* SGD */
    double beta1, beta2; /* AdamW */
    double epsilon;      /* AdamW */
    double weight_decay;
    struct {
        enum schedule_type type;
        int64_t warmup_steps;
        double final_fraction; /* of the learning rate, at the last step */
    } schedule;
};

struct training_spec {
    int64_t epochs, steps, steps_per_epoch;       /* epochs or steps; FIELD_UNSET: not given */
    int64_t batch_size;                           /* global */
    int64_t per_replica_batch_size;               /* instead of batch_size */
    enum scale_learning_rate scale_learning_rate; /* with per_replica_batch_size */
    int64_t gradient_accumulation;
    struct optimizer_spec optimizer;
    enum precision precision;
    double gradient_clip_norm; /* DECIMAL_UNSET: no clipping */
    int64_t seed;
    enum determinism determinism;
    bool preflight;
    int64_t logical_shards; /* FIELD_UNSET: workers x devices x accumulation */
};

struct checkpoint_spec {
    bool enabled; /* the section is there */
    const char *storage;
    const char *path;      /* default: the job's name */
    int64_t every_steps;   /* FIELD_UNSET: not by steps */
    int64_t every_seconds; /* FIELD_UNSET: not by time */
    int64_t keep;
    bool save_on_preemption; /* onPreemption: Save | Discard */
    bool keep_best;          /* keep the weights of the best evaluation apart */
    bool required;           /* fail (66) rather than start anew when none is usable on a resume */
};

#define LOG_PATTERNS_MAX 8

/* How the operator learns the progress of another framework's script. */
struct progress_spec {
    const char *log_patterns[LOG_PATTERNS_MAX]; /* see log_report.h */
    unsigned log_pattern_count;                 /* 0: it does not read the log */
    bool push;                                  /* the script sends it to the operator; see push_report.h */
};

/* A folder of another framework's pods that is kept in the bucket (storage/sync.h). */
struct s3_sync_spec {
    bool enabled; /* the section is there */
    int64_t every_seconds;
    bool delete_removed;
};

/* A bucket with the interface of S3. */
struct s3_spec {
    bool enabled; /* the section is there */
    const char *endpoint, *bucket;
    const char *prefix;      /* NULL: the whole bucket */
    const char *region;      /* NULL: us-east-1 */
    const char *secret_name; /* NULL: requests are not signed, as for public buckets */
    const char *cache_size;  /* a quantity */
    struct s3_sync_spec sync;
};

/* The files that are downloaded into a volume before the pods' programs start (storage/download.h). */
#define DOWNLOAD_SOURCES_MAX 64
struct download_source {
    const char *url, *sha256; /* sha256: NULL for hf:// */
};
struct download_spec {
    bool enabled; /* the section is there */
    struct download_source *sources;
    unsigned source_count;
    const char *hub, *secret_name; /* secret_name: NULL without secretRef */
    const char *size_limit;        /* a quantity */
};

struct storage_spec {
    const char *name;
    bool read_only;
    struct s3_spec s3;
    struct download_spec download;
    const struct json
        *source; /* {"persistentVolumeClaim": {…}}: the volume source as given; the document's; NULL in a worker */
};

/* The crew as the operator writes it into COXSWAIN_JOB. `host_pattern` holds {role} and {index}. */
#define CREW_ROLES_MAX 4
struct crew_role {
    const char *name;
    int64_t count;                /* of its processes, when the operator created this pod */
    int64_t min_count, max_count; /* elastic jobs; FIELD_UNSET: as count */
};
struct crew_spec {
    struct crew_role roles[CREW_ROLES_MAX];
    unsigned role_count;
    const char *host_pattern; /* "digits-{role}-{index}.digits.default.svc" */
    int64_t port;
};

struct job_document {
    const char *job_name, *job_namespace;
    struct strategy_spec strategy;
    int64_t workers;
    struct devices_spec devices;
    struct model_spec model;
    struct data_spec data;
    struct training_spec training;
    const char *init_storage, *init_path;     /* the path NULL: drawn from the seed; the storage NULL: it is absolute */
    const char *export_storage, *export_path; /* as above; the path NULL: no export */
    enum export_format export_format;
    enum export_weights export_weights;
    enum export_names export_names;
    int64_t evaluation_every_steps; /* FIELD_UNSET: once an epoch */
    enum encryption encryption;     /* of what the crew sends each other */
    struct checkpoint_spec checkpoint;
    struct progress_spec progress; /* of another framework's script */
    struct storage_spec *storage;
    unsigned storage_count;
    struct crew_spec crew; /* role_count 0: none given */

    struct arena arena;  /* holds every string and list above */
    struct json *opaque; /* owns JSON that is passed on without being parsed: volume sources, templates */
};

/* Applies the static defaults to a copy of `source`, validates it and reads it; `source` is not needed afterwards. A field that does not
 * exist is an error, too. ERROR_INVALID names the field by its path and says what to write instead: "training.batchSize: -3 is below 1". */
int job_document_parse(const struct json *source, struct job_document *ret_document, struct error *error);
void job_document_release(struct job_document *document);
/* Returns whether XLA computes the model, through a PJRT plugin: a program, or a model of layers on TPUs or with devices.plugin. */
bool job_document_uses_plugin(const struct job_document *document);
/* Returns whether a batch normalisation of the model has statistics Global. */
bool job_document_has_global_statistics(const struct job_document *document);

/* The document as JSON for COXSWAIN_JOB: only what was given or differs from the default, without templates and run policy. */
struct json *job_document_to_json(const struct job_document *document);

/* The word of an enum's value, e.g. strategy_type_name(STRATEGY_MIRRORED) is "Mirrored". */
const char *strategy_type_name(enum strategy_type value);
const char *device_type_name(enum device_type value);
const char *optimizer_type_name(enum optimizer_type value);
const char *layer_type_name(enum layer_type value);
/* Returns the name of a layer without one, to which its position is appended: "conv2d". Names of tensors begin with it. */
const char *layer_default_name(enum layer_type value);
const char *preset_name(enum preset value);

#endif
