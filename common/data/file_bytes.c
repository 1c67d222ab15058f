/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/buffer.h"
#include "common/data/file_name.h"
#include "common/regular_file.h"
#include "common/scope.h"

#define CHUNK (256 * 1024)

/* Inflated bytes on their way: in memory until they are too many, then in a file. */
struct sink {
    uint8_t *memory;
    size_t length, capacity;
    int descriptor; /* -1 while in memory */
};

static void sink_release(struct sink *sink)
{
    free(sink->memory);
    close_scope(&sink->descriptor);
}

static int write_all(int descriptor, const uint8_t *bytes, size_t length, struct error *error)
{
    while (length > 0) {
        ssize_t written = write(descriptor, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_set_errno(error, "cannot write the temporary file of inflated data");
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

static int spill(struct sink *sink, struct error *error)
{
    const char *directory = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    sink->descriptor = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (sink->descriptor < 0)
        return error_set_errno(error, "cannot create a temporary file in %s", directory);
    int failed = write_all(sink->descriptor, sink->memory, sink->length, error);
    free(sink->memory);
    sink->memory = NULL;
    return failed;
}

static int grow(struct sink *sink, size_t wanted, struct error *error)
{
    size_t capacity = sink->capacity ? sink->capacity : CHUNK;
    while (capacity < wanted)
        capacity *= 2;
    uint8_t *memory = realloc(sink->memory, capacity);
    if (!memory)
        return error_set(error, ERROR_NO_SPACE, "no memory for %zu bytes of inflated data", capacity);
    sink->memory = memory;
    sink->capacity = capacity;
    return 0;
}

static int sink_append(struct sink *sink, const uint8_t *bytes, size_t length, struct error *error)
{
    size_t wanted = sink->length + length;
    if ((int64_t)wanted > FILE_BYTES_MAX)
        return error_set(error, ERROR_TOO_LARGE, "inflates to more than %lld bytes", (long long)FILE_BYTES_MAX);
    if (sink->descriptor < 0 && wanted > FILE_BYTES_IN_MEMORY && spill(sink, error) < 0)
        return -1;
    if (sink->descriptor >= 0) {
        if (write_all(sink->descriptor, bytes, length, error) < 0)
            return -1;
    } else {
        if (wanted > sink->capacity && grow(sink, wanted, error) < 0)
            return -1;
        memcpy(sink->memory + sink->length, bytes, length);
    }
    sink->length = wanted;
    return 0;
}

static int map_descriptor(int descriptor, const char *path, size_t length, const char *how, struct file_bytes *ret_file,
                          struct error *error)
{
    *ret_file = (struct file_bytes){.how = how};
    if (length == 0)
        return 0;
    if (mapped_file_open(descriptor, path, &ret_file->file, error) < 0)
        return -1;
    ret_file->bytes = mapped_file_bytes(ret_file->file);
    ret_file->length = mapped_file_length(ret_file->file);
    return 0;
}

/* zlib puts a name of its own before what it says, which is that of a descriptor: "<fd:6>: unexpected end of file". */
static const char *zlib_words(const char *message)
{
    const char *end = message ? strstr(message, ">: ") : NULL;
    if (end && *message == '<')
        message = end + 3;
    return message && *message ? message : "unexpected end";
}

static int inflate_all(gzFile stream, struct sink *sink, struct error *error)
{
    SCOPED_FREE uint8_t *chunk = malloc(CHUNK);
    if (!chunk)
        return error_set(error, ERROR_NO_SPACE, "no memory to inflate");
    for (;;) {
        int length = gzread(stream, chunk, CHUNK), code = Z_OK;
        if (length > 0 && sink_append(sink, chunk, (size_t)length, error) < 0)
            return -1;
        const char *message = gzerror(stream, &code);
        if (length < 0 || (code != Z_OK && code != Z_STREAM_END))
            return error_set(error, ERROR_CORRUPT, "the gzip data is damaged or cut off (%s); fetch the file again",
                             zlib_words(message));
        if (length < CHUNK)
            return 0;
    }
}

static int inflate_descriptor(int descriptor, const char *path, struct file_bytes *ret_file, struct error *error)
{
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    gzFile stream = copy >= 0 ? gzdopen(copy, "rb") : NULL;
    if (!stream) {
        close_scope(&copy);
        return error_set(error, ERROR_NO_SPACE, "cannot start to inflate");
    }
    SCOPED(sink_release) struct sink sink = {.descriptor = -1};
    int failed = inflate_all(stream, &sink, error);
    gzclose(stream);
    if (failed)
        return -1;
    if (sink.descriptor >= 0)
        return map_descriptor(sink.descriptor, path, sink.length, "inflated into a temporary file", ret_file, error);
    *ret_file = (struct file_bytes){.bytes = sink.memory, .length = sink.length, .how = "inflated into memory"};
    sink.memory = NULL;
    return 0;
}

/* Adds to an error about a path that does not exist the names that are there. */
static int suggest_names(const char *path, struct error *error)
{
    if (!error || error->kind != ERROR_NOT_FOUND)
        return -1;
    SCOPED_BUFFER text = BUFFER_INIT(2 * ERROR_MESSAGE_MAX);
    buffer_append_string(&text, error->message, NULL);
    file_name_suggest(path, &text);
    return error_set(error, ERROR_NOT_FOUND, "%s", buffer_text(&text));
}

int file_bytes_open(const char *path, struct file_bytes *ret_file, struct error *error)
{
    SCOPED_CLOSE int descriptor = -1;
    off_t size;
    if (regular_file_open(path, &descriptor, &size, error) < 0)
        return suggest_names(path, error);
    uint8_t magic[2] = {0};
    ssize_t seen = pread(descriptor, magic, sizeof magic, 0);
    bool gzip = seen == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    int failed = gzip ? inflate_descriptor(descriptor, path, ret_file, error)
                      : map_descriptor(descriptor, path, (size_t)size, "mapped", ret_file, error);
    return failed ? error_wrap(error, "%s", path) : 0;
}

int64_t file_bytes_in_memory(const struct file_bytes *file)
{
    return file->file ? 0 : (int64_t)file->length;
}

void file_bytes_release(struct file_bytes *file)
{
    if (file->file)
        mapped_file_close(file->file);
    else
        free((void *)(uintptr_t)file->bytes);
    *file = (struct file_bytes){0};
}

int file_bytes_check(const struct file_bytes *file, uint64_t round, struct error *error)
{
    return file->file ? mapped_file_check(file->file, round, error) : 0;
}
