/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/safetensors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/checkpoint/file.h"

/* A file in memory: header text and `data_bytes` of zeros behind it. */
static size_t make_file(char *out, const char *header, size_t data_bytes)
{
    uint64_t length = strlen(header);
    memcpy(out, &length, sizeof length);
    memcpy(out + 8, header, length);
    memset(out + 8 + length, 0, data_bytes);
    return 8 + length + data_bytes;
}

Test(safetensors, what_is_written_reads_back)
{
    char path[] = "/tmp/coxswain-safetensors-XXXXXX";
    close(mkstemp(path));
    const float values[6] = {1, 2, 3, 4, 5, 6};
    const struct safetensors_tensor tensors[] = {
        {.name = "a.weight", .dtype = SAFETENSORS_F32, .shape = {2, 2}, .rank = 2, .data = values, .bytes = 16},
        {.name = "empty", .dtype = SAFETENSORS_F32, .shape = {0}, .rank = 1, .data = values, .bytes = 0},
        {.name = "a.bias", .dtype = SAFETENSORS_F32, .shape = {2}, .rank = 1, .data = values + 4, .bytes = 8},
    };
    struct error error = ERROR_INIT;
    uint32_t crc, again;
    int64_t size, size_again;
    SCOPED_JSON *metadata = json_new_object();
    json_set_string(metadata, "format", "pt");
    cr_assert_eq(safetensors_write(path, tensors, 3, metadata, DISK_FILE_CACHED, &crc, &size, &error), 0, "%s",
                 error.message);
    cr_assert_eq(file_digest(path, &again, &size_again, &error), 0);
    cr_assert_eq(crc, again);
    cr_assert_eq(size, size_again);
    struct safetensors_file file;
    cr_assert_eq(safetensors_open(path, &file, &error), 0, "%s", error.message);
    cr_assert_eq(file.count, 3);
    const struct safetensors_tensor *bias = safetensors_find(&file, "a.bias");
    cr_assert_not_null(bias);
    cr_assert_eq(bias->rank, 1);
    cr_assert_eq(memcmp(bias->data, values + 4, 8), 0);
    cr_assert_eq((uintptr_t)safetensors_find(&file, "a.weight")->data % 8, 0);
    cr_assert_null(safetensors_find(&file, "b"));
    cr_assert_str_eq(safetensors_metadata(&file, "format"), "pt");
    safetensors_close(&file);
    unlink(path);
}

/* header, bytes of data, part of the message that a person gets */
static const struct hostile {
    const char *header;
    size_t data_bytes;
    const char *expected;
} hostile[] = {
    {"[1]", 0, "not a JSON object"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "outside the file"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "outside the file"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "dtype and shape ask for"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,8]}}", 8, "negative"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9007199254740992,9007199254740992],\"data_offsets\":[0,8]}}", 8,
     "far too large"},
    {"{\"a\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "not known"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "gap"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8, "belong to no tensor"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
     8, "overlaps"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "at most 8"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "outside the file"},
    {"{\"a\":", 4, "header"},
};

Test(safetensors, hostile_headers_get_a_sentence)
{
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        char bytes[512];
        size_t length = make_file(bytes, hostile[i].header, hostile[i].data_bytes);
        struct safetensors_file file;
        struct error error = ERROR_INIT;
        cr_assert_eq(safetensors_parse(bytes, length, &file, &error), -1, "%s was taken", hostile[i].header);
        cr_assert_not_null(strstr(error.message, hostile[i].expected), "%s: %s", hostile[i].header, error.message);
    }
}

Test(safetensors, a_header_longer_than_the_file_is_refused)
{
    struct safetensors_file file;
    struct error error = ERROR_INIT;
    const char bytes[16] = {(char)0xff, (char)0xff, (char)0xff, (char)0xff, (char)0xff, (char)0xff, (char)0xff, 0x7f};
    cr_assert_eq(safetensors_parse(bytes, sizeof bytes, &file, &error), -1);
    cr_assert_eq(safetensors_parse(bytes, 3, &file, &error), -1);
    cr_assert_not_null(strstr(error.message, "too few"));
}
