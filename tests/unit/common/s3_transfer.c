/* SPDX-License-Identifier: Apache-2.0 */
#include "common/s3_transfer.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/crc32c.h"
#include "common/directory.h"
#include "common/memory.h"
#include "tests/unit/s3_server.h"

#define SIZE ((int64_t)20 * 1024 * 1024) /* three ranges */

static char *object; /* SIZE letters */
static bool spoil;   /* a byte of the last range */

static void serve_ranges(struct scripted_request *request)
{
    const char *range = strstr(request->head, "Range: bytes=");
    long long first = 0, last = 0;
    cr_assert_eq(sscanf(range ? range : "", "Range: bytes=%lld-%lld", &first, &last), 2);
    char head[256];
    snprintf(head, sizeof head,
             "HTTP/1.1 206 X\r\nContent-Length: %lld\r\nETag: \"e\"\r\nx-amz-meta-coxswain-crc32c: %08x\r\n\r\n",
             last - first + 1, crc32c(0, object, (size_t)SIZE));
    SCOPED_FREE char *bytes = memory_copy_bytes(object + first, (size_t)(last - first + 1));
    if (spoil && last == SIZE - 1)
        bytes[last - first] ^= 1;
    scripted_send(request, head);
    scripted_send(request, bytes);
}

Test(s3_transfer, a_file_appears_when_its_bytes_are_right, .timeout = 120)
{
    static struct scripted_server server;
    struct error error = ERROR_INIT;
    char folder[] = "/tmp/s3_transfer.XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    SCOPED_FREE char *path = memory_format("%s/file", folder), *partial = memory_format("%s/.partial-0", folder);
    struct s3_download file = {"key", "\"e\"", SIZE, path};
    struct stat status;
    object = memory_allocate((size_t)SIZE + 1, 1);
    for (int64_t i = 0; i < SIZE; i++)
        object[i] = (char)('a' + (i * 31 + i / 1000) % 26);
    struct s3_client *client = s3_server_start(&server, serve_ranges);

    spoil = true;
    cr_assert_lt(s3_download(client, &file, 1, 3, NULL, &error), 0);
    cr_assert_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
    cr_assert_lt(stat(path, &status), 0, "nobody may open it");
    cr_assert_lt(stat(partial, &status), 0);
    spoil = false;
    int64_t bytes = 0;
    cr_assert_eq(s3_download(client, &file, 1, 3, &bytes, &error), 0, "%s", error.message);
    cr_assert_eq(bytes, SIZE);
    cr_assert_eq(stat(path, &status), 0);
    cr_assert_eq(status.st_size, SIZE);

    cr_assert(s3_download_is_there(&file));
    file.etag = "\"other\"";
    cr_assert_not(s3_download_is_there(&file), "the object has been replaced by one of the same size");
    file.etag = "\"e\"";
    cr_assert_eq(utimensat(AT_FDCWD, path, NULL, 0), 0);
    cr_assert_not(s3_download_is_there(&file), "the file has been changed");

    static const int64_t sizes[] = {-1, INT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct s3_download wrong = {"key", "\"e\"", sizes[i], path};
        cr_assert_lt(s3_download(client, &wrong, 1, 1, NULL, &error), 0);
        cr_assert_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
    }

    s3_client_free(client);
    scripted_server_stop(&server);
    directory_remove(folder);
    free(object);
}
