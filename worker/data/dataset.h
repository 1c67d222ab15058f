/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads training and validation examples by number, for the strategies and evaluations, into the
 * buffers that a pass of the model takes (graph.h). The data is in one of these formats:
 *
 *   idx        images (magic 0x803) and labels (0x801), plain or gzip. Pixels
 *              become float32 in [0,1] (value / 255). Plain files are memory-
 *              mapped; gzip is inflated once, when the dataset is opened: into memory
 *              up to 64 MiB, else into an unlinked temporary file (TMPDIR).
 *   bytes      a text file, memory-mapped: example i is the window of bytes
 *              [i c, i c + c); the targets are the bytes shifted by one; c = context
 *   cifar10    the binary version (Krizhevsky 2009): a byte of label and 3,072 of
 *              pixels, whose planes become H W C
 *   npy        NumPy arrays (numpy.lib.format): images or rows of a table, of uint8
 *              (value / 255), float32, float64 or other integers, channels last;
 *              labels of integers, or of floats. For a program an array for each
 *              of its inputs, also of integers
 *   tokens     llm.c's files: a header of 1 KiB, then uint16 (GPT-2) or uint32
 *              (Llama 3); examples are windows as in bytes, within a file
 *   tfrecord   tf.train.Example; the image is bytes (value / 255, or float32
 *              when there are four times as many) or a list of floats. Opening
 *              indexes the records (8 bytes each); reading checks their CRCs
 *   csv        tables as text: numbers, and a label that is a number, or a word for
 *              each class, in their order. The table is read into memory (1 GiB)
 *   images     a folder of PNG and JPEG files with a folder for each class
 *              (common/data/image_folder.h), resized to the model's input (value /
 *              255). Several threads decode a batch (dataset_set_readers). Resized images are
 *              kept in memory if they may be (dataset_keep)
 *   synthetic  images of class-dependent pattern plus noise, or tokens of a
 *              simple progression: a pure function of the index
 *
 * Other files are mapped, so data may be larger than memory; beside the tables, kept images and
 * inflated gzip above, only the index of TFRecords takes memory.
 *
 * Malformed input is ERROR_INVALID or ERROR_CORRUPT; the message names the file, what was found and
 * what was expected. Reading is thread-safe.
 */
#ifndef COXSWAIN_DATA_DATASET_H
#define COXSWAIN_DATA_DATASET_H

#include <stdint.h>

#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/data/storage_map.h"
#include "worker/data/training_facts.h"
#include "worker/model/example_format.h"

struct dataset;

enum dataset_split { SPLIT_TRAIN, SPLIT_VALIDATION };

/* Opens one split of `spec`. ERROR_INVALID if the files do not hold what the model needs
 * (`format`). If the spec has no validation data, that split has 0 examples. This and the other
 * dataset_open_… read their arguments during the call only. */
int dataset_open(const struct data_spec *spec, const struct storage_map *storage, enum dataset_split split,
                 const struct example_format *format, struct dataset **ret_dataset, struct error *error);
/* Opens the validation split after the training split of the same `spec`. Facts about the training files, such as means and class labels,
 * are copied from `training` and not measured again. */
int dataset_open_validation(const struct data_spec *spec, const struct storage_map *storage,
                            const struct dataset *training, struct dataset **ret_dataset, struct error *error);
/* Opens the validation split to evaluate weights that were trained earlier. If the split has files of its own, they are interpreted by the
 * facts in `known`, which are kept with the weights. If its examples are held out from the training files, these files must still exist, and
 * the facts are read from them. */
int dataset_open_held_out(const struct data_spec *spec, const struct storage_map *storage,
                          const struct example_format *format, const struct training_facts *known,
                          struct dataset **ret_dataset, struct error *error);
/* Opens new examples at a path of the caller, for predictions: an NPY file of inputs without labels; for data of format CSV also a table with
 * or without the column of labels (any name but *.npy and *.npy.gz); for data of format ImageFolder also one image, or all images in a folder
 * and below it. If the file has no labels, dataset_read fills targets with meaningless values. Columns that have names are found by the names
 * in `known`, in any order. With data.standardize in `spec`, the inputs are standardized with the means in `known`; if it has none, the
 * training examples are read to measure them. ERROR_INVALID if the file does not have the inputs of the model, if the model takes tokens or
 * several inputs, or if the training data, as far as it still exists, was divided by 255 and this file would not be, or the reverse. */
int dataset_open_inputs(const char *path, const struct data_spec *spec, const struct storage_map *storage,
                        const struct example_format *format, const struct training_facts *known,
                        struct dataset **ret_dataset, struct error *error);

/* Returns whether new examples have labels: the table has the label's column, or the images are in folders that are named like classes. */
bool dataset_has_targets(const struct dataset *dataset);
/* Returns whether the examples are rows of a CSV file. */
bool dataset_is_table(const struct dataset *dataset);

/* Returns the facts about the training files: read from them, or those with which the dataset was opened. */
const struct training_facts *dataset_facts(const struct dataset *dataset);

/* Converts the targets of `count` examples, or a model's predictions of them, in place from standardized values to the units of the files.
 * Does nothing without data.standardize. */
void dataset_restore_targets(const struct dataset *dataset, float *values, int64_t count);

/* Returns by how much a difference between targets is larger in the units of the files: 1 without data.standardize. NAN: it is not the same
 * for all targets of an example. */
double dataset_target_unit(const struct dataset *dataset);

/* Digests of those properties of the training files that trained weights depend on. They are kept with the weights, so that weights are not
 * used with other data by mistake. "": the data has no such property. */
struct dataset_digests {
    char standardized[9]; /* the training examples, as data.standardize has measured them */
    char classes[9];      /* CSV: the labels of the training files, in the order of the classes */
    char words[9];        /* CSV: the words of the training files' columns, in their order */
};
struct dataset_digests dataset_digests(const struct dataset *dataset);

void dataset_free(struct dataset *dataset);

int64_t dataset_count(const struct dataset *dataset);
const struct example_format *dataset_format(const struct dataset *dataset);
/* Describes the dataset for people: "images 28x28, 10 classes, from t10k-images-idx3-ubyte.gz (inflated into memory)". */
const char *dataset_description(const struct dataset *dataset);

/* Returns how many bytes the examples take in memory while the dataset is open: tables, texts of JSON Lines and inflated files. Mapped files,
 * and examples that dataset_keep keeps, do not count. NULL: 0. */
int64_t dataset_memory(const struct dataset *dataset);

/* Returns a warning about the examples for the user, such as that a table has words that the training table lacks; "": no warning. */
const char *dataset_notice(const struct dataset *dataset);

/* Lets the dataset keep decoded examples in memory, if all of them take at most `most` bytes. Returns how many they take; 0: none is kept,
 * which is the default. Call it before the first example is read. */
int64_t dataset_keep(struct dataset *dataset, int64_t most);

/* Sets how many threads may read a batch if examples take long to read; the default is one for each processor. More than 16 are never used.
 * The examples are the same for any number. */
void dataset_set_readers(struct dataset *dataset, int threads);

/* Returns the path of an example's file, relative to the folder of the dataset; NULL if examples have no files of their own. */
const char *dataset_example_name(const struct dataset *dataset, int64_t index);

/* Reads `count` examples in the order of `indices` (each 0 .. dataset_count-1). ERROR_NOT_FOUND if
 * a file has become shorter since it was opened. */
int dataset_read(const struct dataset *dataset, const int64_t *indices, int64_t count, void *inputs, void *targets,
                 struct error *error);

/* Reads examples as training sees them in an epoch: augmented as data.augmentation says
 * (augmentation.h). Examples of the validation split are not augmented. */
struct dataset_epoch {
    uint64_t seed;
    int64_t number;
};
int dataset_read_in_epoch(const struct dataset *dataset, struct dataset_epoch epoch, const int64_t *indices,
                          int64_t count, void *inputs, void *targets, struct error *error);

#endif
