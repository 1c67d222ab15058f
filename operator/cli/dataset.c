/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/directory.h"
#include "common/http_client.h"
#include "common/memory.h"
#include "operator/cli/paths.h"
#include "operator/cli/sha256.h"

#define DOWNLOAD_IDLE_MS 15000
#define DOWNLOAD_TIMEOUT_MS 300000

static const struct dataset datasets[] = {
    {
        .name = "digits",
        .title = "handwritten digits (the 10,000 of the MNIST test set)",
        .mirrors = {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                    "https://storage.googleapis.com/cvdf-datasets/mnist/"},
        .files =
            {
                {"mnist/t10k-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                 "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", 4 * 1024 * 1024, 7840016},
                {"mnist/t10k-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte.gz",
                 "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", 64 * 1024, 10008},
            },
    },
};

const struct dataset *dataset_find(const char *name)
{
    for (size_t i = 0; i < sizeof datasets / sizeof *datasets; i++) {
        if (strcmp(datasets[i].name, name) == 0)
            return &datasets[i];
    }
    return NULL;
}

static int file_check(const struct dataset_file *file, const char *path, struct error *error)
{
    char digest[DIGEST_TEXT_MAX];
    if (sha256_unpacked(path, file->unpacked_size, digest, error) < 0)
        return -1;
    if (strcmp(digest, file->sha256) != 0)
        return error_set(error, ERROR_CORRUPT, "%s is not the expected file: its contents have the SHA-256 %s", path,
                         digest);
    return 0;
}

/* Whether `directory` holds all files with their digests; ERROR_NOT_FOUND when one is missing. */
static int check(const struct dataset *dataset, const char *directory, struct error *error)
{
    for (const struct dataset_file *file = dataset->files; file->path; file++) {
        SCOPED_FREE char *path = memory_format("%s/%s", directory, file->path);
        if (file_check(file, path, error) < 0)
            return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- download */

struct download {
    const struct dataset *dataset;
    const char *directory;
    struct event_loop *loop;
    dataset_progress *progress; /* may be NULL */
    void *context;
    /* The current file: */
    const struct dataset_file *file;
    const char *url;
    int output;
    bool over, failed, cancelled;
    struct error error;
};

static int download_data(void *context, const char *bytes, size_t length, struct error *error)
{
    struct download *download = context;
    off_t size = lseek(download->output, 0, SEEK_CUR);
    if ((size_t)size + length > download->file->packed_max)
        return error_set(
            error, ERROR_TOO_LARGE,
            "%s: the server sent more than %zu bytes, which is more than the file has; does a proxy answer in "
            "its place?",
            download->url, download->file->packed_max);
    if (write(download->output, bytes, length) != (ssize_t)length)
        return error_set_errno(error, "write the download");
    return 0;
}

static void download_told(void *context, int64_t received, int64_t total)
{
    struct download *download = context;
    if (download->progress && !download->progress(download->context, download->file->name, received, total))
        download->cancelled = true;
}

static void download_done(void *context, const struct http_response *response)
{
    struct download *download = context;
    download->over = true;
    download->failed = response->error || response->status != 200;
    if (response->error)
        download->error = *response->error;
    else if (response->status != 200)
        error_set(&download->error, ERROR_UNAVAILABLE, "%s: the server answered with HTTP status %d", download->url,
                  response->status);
}

static int download_file(struct download *download, struct error *error)
{
    struct http_client *client = NULL;
    struct http_client_options options = {.user_agent = "coxswain"};
    if (http_client_new(download->loop, &options, &client, error) < 0)
        return -1;
    struct http_request request = {
        .method = "GET",
        .url = download->url,
        .timeout_ms = DOWNLOAD_TIMEOUT_MS,
        .idle_timeout_ms = DOWNLOAD_IDLE_MS,
        .follow_redirects = true,
        .on_data = download_data,
        .on_progress = download_told,
        .done = download_done,
        .context = download,
    };
    download->over = false;
    http_client_start(client, &request);
    int result = 0;
    while (result == 0 && !download->over && !download->cancelled)
        result = event_loop_turn(download->loop, -1, error);
    bool cancelled = download->cancelled && !download->over;
    http_client_free(client);
    if (cancelled)
        return error_set(error, ERROR_CANCELLED, "the download was interrupted");
    if (result == 0 && download->failed)
        return error_set(error, download->error.kind, "%s", download->error.message);
    return result;
}

/* Under its own name only once it is whole and checked. */
static int fetch_from(struct download *download, const char *mirror, struct error *error)
{
    const struct dataset_file *file = download->file;
    SCOPED_FREE char *url = memory_format("%s%s%s", mirror, mirror[strlen(mirror) - 1] == '/' ? "" : "/", file->name);
    SCOPED_FREE char *path = memory_format("%s/%s", download->directory, file->path);
    SCOPED_FREE char *partial = memory_format("%s.part", path);
    SCOPED_CLOSE int output = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (output < 0)
        return error_set_errno(error, "write %s", partial);
    download->output = output;
    download->url = url;
    int result = download_file(download, error);
    if (result == 0 && (result = file_check(file, partial, error)) < 0)
        error_wrap(error, "%s", url);
    if (result < 0) {
        unlink(partial);
        return -1;
    }
    return rename(partial, path) < 0 ? error_set_errno(error, "rename %s", partial) : 0;
}

static int fetch(struct download *download, struct error *error)
{
    const char *given = getenv("COXSWAIN_MIRROR");
    const char *const only[] = {given, NULL};
    const char *const *mirrors = given && *given ? only : download->dataset->mirrors;
    SCOPED_FREE char *path = memory_format("%s/%s", download->directory, download->file->path);
    if (file_check(download->file, path, NULL) == 0)
        return 0;
    SCOPED_BUFFER causes = BUFFER_INIT(ERROR_MESSAGE_MAX);
    for (; *mirrors; mirrors++) {
        struct error cause = ERROR_INIT;
        if (fetch_from(download, *mirrors, &cause) == 0)
            return 0;
        if (cause.kind == ERROR_CANCELLED)
            return error_set(error, ERROR_CANCELLED, "%s", cause.message);
        buffer_format(&causes, "%s%s", causes.length ? "; " : "", cause.message);
    }
    return error_set(error, ERROR_UNAVAILABLE, "%s", buffer_text(&causes));
}

static int download_all(struct download *download, struct error *error)
{
    for (download->file = download->dataset->files; download->file->path; download->file++) {
        SCOPED_FREE char *path = memory_format("%s/%s", download->directory, download->file->path);
        *strrchr(path, '/') = '\0';
        if (directory_make(path, error) < 0 || fetch(download, error) < 0)
            return -1;
    }
    return 0;
}

int dataset_obtain(const struct dataset *dataset, struct event_loop *loop, dataset_progress *progress, void *context,
                   char **ret_directory, struct error *error)
{
    const char *given = getenv("COXSWAIN_DATA");
    if (given && *given) {
        if (check(dataset, given, error) < 0)
            return error_wrap(error, "COXSWAIN_DATA");
        *ret_directory = realpath(given, NULL);
        return *ret_directory ? 0 : error_set_errno(error, "COXSWAIN_DATA %s", given);
    }
    SCOPED_FREE char *cache = path_user_directory("XDG_CACHE_HOME", ".cache");
    SCOPED_FREE char *directory = memory_format("%s/data", cache);
    struct download download = {
        .dataset = dataset, .directory = directory, .loop = loop, .progress = progress, .context = context};
    if (download_all(&download, error) < 0)
        return -1;
    *ret_directory = memory_copy_string(directory);
    return 0;
}
