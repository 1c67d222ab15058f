/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/safetensors.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/regular_file.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"

#define METADATA "__metadata__"
#define LENGTH_BYTES 8
/* The header is padded with spaces, so that tensor data begins at a block of the disk. */
#define ALIGNMENT DISK_FILE_BLOCK

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
#define X(name, bytes) {#name, bytes},
    SAFETENSORS_DTYPES(X)
#undef X
};
#define DTYPE_COUNT (sizeof dtypes / sizeof dtypes[0])

/* ---- writing */

static void describe_tensor(struct json *header, const struct safetensors_tensor *tensor, int64_t begin)
{
    struct json *entry = json_set_object(header, tensor->name);
    json_set_string(entry, "dtype", dtypes[tensor->dtype].name);
    struct json *shape = json_set_array(entry, "shape");
    for (unsigned i = 0; i < tensor->rank; i++)
        json_append(shape, json_new_integer(tensor->shape[i]));
    struct json *offsets = json_set_array(entry, "data_offsets");
    json_append(offsets, json_new_integer(begin));
    json_append(offsets, json_new_integer(begin + (int64_t)tensor->bytes));
}

static int print_header(const struct safetensors_tensor *tensors, unsigned count, const struct json *metadata,
                        struct buffer *out, struct error *error)
{
    SCOPED_JSON *header = json_new_object();
    if (metadata)
        json_set(header, METADATA, json_copy(metadata));
    int64_t begin = 0;
    for (unsigned i = 0; i < count; i++) {
        describe_tensor(header, &tensors[i], begin);
        begin += (int64_t)tensors[i].bytes;
    }
    if (json_print(header, out, error) < 0)
        return -1;
    while ((LENGTH_BYTES + out->length) % ALIGNMENT != 0)
        if (buffer_append_byte(out, ' ', error) < 0)
            return -1;
    return 0;
}

int safetensors_write(const char *path, const struct safetensors_tensor *tensors, unsigned count,
                      const struct json *metadata, enum disk_file_way way, uint32_t *ret_crc, int64_t *ret_size,
                      struct error *error)
{
    SCOPED_BUFFER header = BUFFER_INIT(SAFETENSORS_HEADER_MAX);
    if (print_header(tensors, count, metadata, &header, error) < 0)
        return error_wrap(error, "%s: header", path);
    uint64_t length = htole64(header.length);
    SCOPED_FREE struct disk_file_span *spans = memory_allocate((size_t)count + 2, sizeof *spans);
    spans[0] = (struct disk_file_span){&length, sizeof length};
    spans[1] = (struct disk_file_span){header.data, header.length};
    for (unsigned i = 0; i < count; i++)
        spans[2 + i] = (struct disk_file_span){tensors[i].data, tensors[i].bytes};
    return disk_file_write(path, spans, count + 2, way, ret_crc, ret_size, error);
}

/* ---- reading */

static int parse_dtype(const char *name, enum safetensors_dtype *ret_dtype)
{
    for (size_t i = 0; i < DTYPE_COUNT; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            *ret_dtype = (enum safetensors_dtype)i;
            return 0;
        }
    return -1;
}

/* Sets rank, shape and, from them and the dtype, bytes. */
static int parse_shape(const struct json *shape, struct safetensors_tensor *tensor, struct error *error)
{
    if (json_type(shape) != JSON_ARRAY || json_count(shape) > SAFETENSORS_RANK_MAX)
        return error_set(error, ERROR_INVALID, "shape is not a list of at most %d numbers", SAFETENSORS_RANK_MAX);
    size_t bytes = dtypes[tensor->dtype].bytes;
    for (const struct json *item = json_first(shape); item; item = json_next(item)) {
        int64_t extent = json_integer(item, -1);
        if (extent < 0 || __builtin_mul_overflow(bytes, (size_t)extent, &bytes))
            return error_set(error, ERROR_INVALID, "shape has an extent that is negative, not whole or far too large");
        tensor->shape[tensor->rank++] = extent;
    }
    tensor->bytes = bytes;
    return 0;
}

static int parse_entry(const struct json *entry, const char *data, size_t data_bytes,
                       struct safetensors_tensor *ret_tensor, struct error *error)
{
    struct safetensors_tensor tensor = {.name = json_key(entry)};
    const char *dtype = json_string(json_member(entry, "dtype"), "");
    if (parse_dtype(dtype, &tensor.dtype) < 0)
        return error_set(error, ERROR_INVALID, "dtype \"%.16s\" is not known", dtype);
    if (parse_shape(json_member(entry, "shape"), &tensor, error) < 0)
        return -1;
    const struct json *offsets = json_member(entry, "data_offsets");
    int64_t begin = json_integer(json_element(offsets, 0), -1);
    int64_t end = json_integer(json_element(offsets, 1), -1);
    if (json_count(offsets) != 2 || begin < 0 || end < begin || (uint64_t)end > data_bytes)
        return error_set(error, ERROR_INVALID, "data_offsets lie outside the file's %zu bytes of data", data_bytes);
    if ((size_t)(end - begin) != tensor.bytes)
        return error_set(error, ERROR_INVALID, "%lld bytes of data, but dtype and shape ask for %zu",
                         (long long)(end - begin), tensor.bytes);
    tensor.data = data + begin;
    *ret_tensor = tensor;
    return 0;
}

static int compare_positions(const void *left, const void *right)
{
    const struct safetensors_tensor *a = left, *b = right;
    if (a->data != b->data)
        return (const char *)a->data < (const char *)b->data ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Every byte of data belongs to exactly one tensor. */
static int check_coverage(const struct safetensors_file *file, const char *data, size_t data_bytes, struct error *error)
{
    const char *expected = data;
    for (unsigned i = 0; i < file->count; i++) {
        if (file->tensors[i].data != (const void *)expected)
            return error_set(error, ERROR_INVALID, "tensor %s overlaps another or leaves a gap before it",
                             file->tensors[i].name);
        expected += file->tensors[i].bytes;
    }
    if (expected != data + data_bytes)
        return error_set(error, ERROR_INVALID, "%zu bytes at the end belong to no tensor",
                         (size_t)(data + data_bytes - expected));
    return 0;
}

static int parse_tensors(struct safetensors_file *file, const char *data, size_t data_bytes, struct error *error)
{
    file->tensors = memory_allocate(json_count(file->header), sizeof *file->tensors);
    for (const struct json *entry = json_first(file->header); entry; entry = json_next(entry)) {
        if (strcmp(json_key(entry), METADATA) == 0)
            continue;
        if (parse_entry(entry, data, data_bytes, &file->tensors[file->count], error) < 0)
            return error_wrap(error, "tensor %.64s", json_key(entry));
        file->count++;
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_positions);
    return check_coverage(file, data, data_bytes, error);
}

int safetensors_parse(const void *bytes, size_t length, struct safetensors_file *ret_file, struct error *error)
{
    uint64_t header_length;
    if (length < LENGTH_BYTES)
        return error_set(error, ERROR_INVALID, "%zu bytes are too few for a safetensors file", length);
    memcpy(&header_length, bytes, sizeof header_length);
    header_length = le64toh(header_length);
    if (header_length > SAFETENSORS_HEADER_MAX || header_length > length - LENGTH_BYTES)
        return error_set(error, ERROR_INVALID, "the header should have %llu bytes, but the file ends before that",
                         (unsigned long long)header_length);
    struct safetensors_file file = {0};
    const char *header = (const char *)bytes + LENGTH_BYTES;
    if (json_parse(header, header_length, SAFETENSORS_HEADER_MAX, &file.header, error) < 0)
        return error_wrap(error, "header");
    int result = 0;
    if (json_type(file.header) != JSON_OBJECT)
        result = error_set(error, ERROR_INVALID, "the header is not a JSON object");
    else
        result = parse_tensors(&file, header + header_length, length - LENGTH_BYTES - header_length, error);
    if (result < 0) {
        safetensors_close(&file);
        return -1;
    }
    *ret_file = file;
    return 0;
}

static int open_descriptor(int descriptor, off_t size, const char *path, struct safetensors_file *ret_file,
                           struct error *error)
{
    struct mapped_file *mapping;
    if (size < LENGTH_BYTES)
        return error_set(error, ERROR_INVALID, "%s is not a safetensors file: it is too short", path);
    if (mapped_file_open(descriptor, path, &mapping, error) < 0)
        return -1;
    if (safetensors_parse(mapped_file_bytes(mapping), mapped_file_length(mapping), ret_file, error) < 0) {
        mapped_file_close(mapping);
        return error_wrap(error, "%s is not a usable safetensors file", path);
    }
    ret_file->mapping = mapping;
    return 0;
}

int safetensors_open(const char *path, struct safetensors_file *ret_file, struct error *error)
{
    SCOPED_CLOSE int descriptor = -1;
    off_t size;
    if (regular_file_open(path, &descriptor, &size, error) < 0)
        return -1;
    return open_descriptor(descriptor, size, path, ret_file, error);
}

int safetensors_open_kept(const char *path, struct safetensors_file *ret_file, struct error *error)
{
    SCOPED_CLOSE int descriptor = -1;
    off_t size;
    if (file_open(path, &descriptor, error) < 0 || regular_file_check(descriptor, path, &size, error) < 0)
        return -1;
    return open_descriptor(descriptor, size, path, ret_file, error);
}

int safetensors_check(const struct safetensors_file *file, struct error *error)
{
    return file->mapping ? mapped_file_check(file->mapping, mapped_file_round(), error) : 0;
}

void safetensors_close(struct safetensors_file *file)
{
    free(file->tensors);
    json_free(file->header);
    mapped_file_close(file->mapping);
    *file = (struct safetensors_file){0};
}

const struct safetensors_tensor *safetensors_find(const struct safetensors_file *file, const char *name)
{
    for (unsigned i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

const struct json *safetensors_all_metadata(const struct safetensors_file *file)
{
    return json_member(file->header, METADATA);
}

const char *safetensors_metadata(const struct safetensors_file *file, const char *key)
{
    return json_string(json_member(safetensors_all_metadata(file), key), NULL);
}
