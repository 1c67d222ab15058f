/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes files in the safetensors format (huggingface/safetensors, README "Format"), for
 * checkpoints, exported models and initial weights: eight bytes of little-endian header length, a JSON header
 * with name, dtype, shape and byte range of each tensor, then the tensors' bytes without gaps. The format
 * contains no code, and every framework reads it. Files are mapped for reading, and everything in a header is
 * checked before it is used.
 */
#ifndef COXSWAIN_CHECKPOINT_SAFETENSORS_H
#define COXSWAIN_CHECKPOINT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "common/data/mapped_file.h"
#include "common/error.h"
#include "common/json.h"
#include "worker/checkpoint/disk_file.h"

#define SAFETENSORS_RANK_MAX 8
/* Longer headers are refused. A million tensors fit. */
#define SAFETENSORS_HEADER_MAX ((size_t)100 << 20)

#define SAFETENSORS_DTYPES(X)                                                                                          \
    X(F64, 8) X(F32, 4) X(F16, 2) X(BF16, 2) X(I64, 8) X(I32, 4) X(I16, 2) X(I8, 1) X(U8, 1) X(BOOL, 1)
enum safetensors_dtype {
#define X(name, bytes) SAFETENSORS_##name,
    SAFETENSORS_DTYPES(X)
#undef X
};

struct safetensors_tensor {
    const char *name;
    enum safetensors_dtype dtype;
    int64_t shape[SAFETENSORS_RANK_MAX];
    unsigned rank;
    const void *data; /* `bytes` = product of `shape` x size of `dtype` */
    size_t bytes;
};

/* Writes a whole new file, syncs and closes it (disk_file.h). `metadata` is an object of strings,
 * or NULL. *ret_crc is the CRC-32C of all bytes of the file. */
int safetensors_write(const char *path, const struct safetensors_tensor *tensors, unsigned count,
                      const struct json *metadata, enum disk_file_way way, uint32_t *ret_crc, int64_t *ret_size,
                      struct error *error);

/* A file that is open for reading. It is mapped; its header has been checked: dtypes are known,
 * sizes match shapes, ranges cover the data without overlap or gap. Tensor data points into the
 * mapping. */
struct safetensors_file {
    struct safetensors_tensor *tensors; /* in the order of their bytes */
    unsigned count;
    struct json *header;
    struct mapped_file *mapping;
};

/* Opens a file that a user names. Follows symbolic links. */
int safetensors_open(const char *path, struct safetensors_file *ret_file, struct error *error);
/* Opens a file that a job keeps (file.h). Does not follow links. */
int safetensors_open_kept(const char *path, struct safetensors_file *ret_file, struct error *error);
/* Checks that the file has not become shorter since it was opened; ERROR_NOT_FOUND if it has, because the
 * missing bytes then read as zeros. To be called after reading tensors. */
int safetensors_check(const struct safetensors_file *file, struct error *error);
/* Opens a file whose bytes are in the caller's memory. They must stay valid until safetensors_close. */
int safetensors_parse(const void *bytes, size_t length, struct safetensors_file *ret_file, struct error *error);
void safetensors_close(struct safetensors_file *file);

/* Returns the tensor of that name, or NULL. It lives, like what the next two return, until safetensors_close. */
const struct safetensors_tensor *safetensors_find(const struct safetensors_file *file, const char *name);
/* Returns __metadata__, an object of strings, or NULL. */
const struct json *safetensors_all_metadata(const struct safetensors_file *file);
/* Returns the string in __metadata__, or NULL. */
const char *safetensors_metadata(const struct safetensors_file *file, const char *key);

#endif
