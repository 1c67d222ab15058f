/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/download.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/directory.h"
#include "common/http_client.h"
#include "common/memory.h"
#include "common/percent.h"
#include "common/regular_file.h"
#include "common/s3_transfer.h"
#include "storage/fetch.h"
#include "storage/hub_listing.h"

#define LISTING_NAME HUB_VERIFIED_PREFIX "listing"
#define LOCK_NAME HUB_OWN_PREFIX "download.lock"
#define SMALL_FILE_MAX ((size_t)1024 * 1024) /* of a token, certificates or a note */
#define URL_MAX ((size_t)1024 * 1024)
#define IDLE_MS 30000
#define REPORT_MS 10000
#define RETRY_FIRST_MS 500
#define RETRY_LAST_MS 10000
#define LOCK_POLL_MS 500
#define ORDERED_MAX_MS                                                                                                 \
    ((int64_t)15 * 60 * 1000) /* of waits that a server orders by Retry-After, until there is progress */
#define UNKNOWN (-1)

struct downloader {
    const struct download_request *request;
    const char *hub;
    struct event_loop *loop;
    struct http_client *client;
    char *token; /* NULL: none */
    struct download_result result;
    int64_t used; /* bytes of the files so far */
};

/* One file, wherever it comes from. */
struct wanted {
    const char *url, *path; /* path: below the folder */
    enum digest_kind digest_kind;
    const char *digest;
    int64_t size; /* UNKNOWN: the server tells */
};

/* ---------------------------------------------------------------- one request */

struct transfer {
    struct downloader *downloader;
    const struct wanted *wanted;
    int output;                    /* -1: the answer is collected in `body` */
    int64_t position, resumed_at;  /* bytes of the file that are written, and that were when this attempt began */
    int64_t ceiling;               /* the most bytes that the file may have */
    int64_t total;                 /* bytes of the file; UNKNOWN until the server tells */
    int64_t begin_ms, reported_ms; /* of this attempt; of the last report */
    struct buffer body;
    bool over;
    int64_t retry_after_ms;
    struct error error;
};

static void report(struct transfer *transfer)
{
    int64_t now = clock_monotonic_ms(), spent = now - transfer->begin_ms, left = UNKNOWN;
    int64_t got = transfer->position - transfer->resumed_at;
    if (!transfer->downloader->request->report || now - transfer->reported_ms < REPORT_MS)
        return;
    transfer->reported_ms = now;
    if (transfer->total >= 0 && got > 0)
        left = (int64_t)((double)(transfer->total - transfer->position) * (double)spent / (double)got);
    transfer->downloader->request->report(transfer->wanted->path, transfer->position, transfer->total, left);
}

static int on_data(void *context, const char *bytes, size_t length, struct error *error)
{
    struct transfer *transfer = context;
    const struct wanted *wanted = transfer->wanted;
    int64_t after = transfer->position + (int64_t)length;
    if (wanted->size != UNKNOWN && after > wanted->size)
        return error_set(error, ERROR_CORRUPT, "%s sends more than the %" PRId64 " bytes that the hub lists",
                         wanted->url, wanted->size);
    if ((after > transfer->total ? after : transfer->total) > transfer->ceiling)
        return error_set(error, ERROR_TOO_LARGE,
                         "the files are larger than %" PRId64 " bytes; raise sizeLimit, or download fewer files",
                         transfer->downloader->request->ceiling);
    while (length > 0) {
        ssize_t count = pwrite(transfer->output, bytes, length, transfer->position);
        if (count < 0 && (errno == ENOSPC || errno == EDQUOT))
            return error_set(error, ERROR_NO_SPACE,
                             "the volume is full after %" PRId64 " bytes of this file; give the claim more storage, "
                             "or remove files",
                             transfer->position);
        if (count < 0)
            return error_set_errno(error, "write the download");
        bytes += count, length -= (size_t)count;
        transfer->position += count;
        transfer->downloader->result.bytes += count;
    }
    report(transfer);
    return 0;
}

static void on_progress(void *context, int64_t received, int64_t total)
{
    struct transfer *transfer = context;
    (void)received;
    if (total > 0)
        transfer->total = transfer->resumed_at + total;
}

static int judge(int status, const char *url, struct error *error)
{
    if (status == 200 || status == 206)
        return 0;
    if (status == 401 || status == 403)
        return error_set(
            error, ERROR_FORBIDDEN,
            "access to %s is refused (%d): it does not exist, or is private or gated; correct its name, or "
            "put a token that may read it into the Secret of secretRef, under the key token",
            url, status);
    if (status == 404 || status == 410)
        return error_set(error, ERROR_NOT_FOUND, "there is nothing at %s (%d); correct the name or the revision", url,
                         status);
    if (status == 429 || status == 408 || status >= 500)
        return error_set(error, ERROR_UNAVAILABLE, "%s answers %d", url, status);
    return error_set(error, ERROR_INVALID, "%s answers %d, which is no download; correct the address", url, status);
}

static void on_done(void *context, const struct http_response *response)
{
    struct transfer *transfer = context;
    transfer->over = true;
    transfer->retry_after_ms = response->retry_after_ms;
    if (response->error)
        transfer->error = *response->error;
    else if (response->status == 416 && transfer->resumed_at > 0 && transfer->position < transfer->wanted->size)
        error_set(&transfer->error, ERROR_CONFLICT, "%s is shorter than the partial file", transfer->wanted->url);
    else if (response->status == 416 && transfer->resumed_at > 0)
        transfer->error = (struct error)ERROR_INIT; /* the partial file has all bytes already */
    else if (judge(response->status, transfer->wanted->url, &transfer->error) == 0 && transfer->output < 0)
        buffer_append(&transfer->body, response->body, response->body_length, &transfer->error);
    if (transfer->error.kind == ERROR_NONE && transfer->output >= 0 && transfer->position < transfer->wanted->size)
        error_set(&transfer->error, ERROR_UNAVAILABLE, "%s: the answer ends after %" PRId64 " of %" PRId64 " bytes",
                  transfer->wanted->url, transfer->position, transfer->wanted->size);
}

static int attempt(struct transfer *transfer, struct error *error)
{
    struct downloader *downloader = transfer->downloader;
    struct http_request request = {
        .method = "GET",
        .url = transfer->wanted->url,
        .bearer_token = downloader->token,
        .idle_timeout_ms = IDLE_MS,
        .max_body = transfer->output < 0 ? HUB_LISTING_MAX : 0,
        .follow_redirects = true,
        .resume_from = transfer->position,
        .on_data = transfer->output < 0 ? NULL : on_data,
        .on_progress = on_progress,
        .done = on_done,
        .context = transfer,
    };
    transfer->over = false;
    transfer->error = (struct error)ERROR_INIT;
    transfer->resumed_at = transfer->position;
    transfer->total = transfer->wanted->size;
    transfer->begin_ms = clock_monotonic_ms();
    struct http_transfer *running = http_client_start(downloader->client, &request);
    while (!transfer->over)
        if (event_loop_turn(downloader->loop, -1, error) < 0) {
            if (!transfer->over)
                http_transfer_cancel(running);
            return -1;
        }
    if (transfer->error.kind == ERROR_NONE)
        return 0;
    return error_set(error, transfer->error.kind, "%s", transfer->error.message);
}

static bool may_pass(const struct error *error)
{
    return error->kind == ERROR_UNAVAILABLE || error->kind == ERROR_TIMEOUT;
}

/* Repeats an attempt until it succeeds, fails for good, or has made no progress for patience_ms. Each goes on where the one before ended.
 * Bytes that are downloaded a second time are no progress. */
static int transfer_run(struct transfer *transfer, struct error *error)
{
    int64_t patience = transfer->downloader->request->patience_ms, progress_ms = clock_monotonic_ms();
    int64_t farthest = transfer->position, ordered = 0;
    transfer->reported_ms = progress_ms;
    for (int64_t delay = RETRY_FIRST_MS;; delay = 2 * delay < RETRY_LAST_MS ? 2 * delay : RETRY_LAST_MS) {
        struct error cause = ERROR_INIT;
        if (attempt(transfer, &cause) == 0)
            return 0;
        if (transfer->position > farthest) {
            farthest = transfer->position, ordered = 0;
            progress_ms = clock_monotonic_ms();
            delay = RETRY_FIRST_MS;
        }
        if (cause.kind == ERROR_CONFLICT && transfer->position > 0) { /* the server cannot resume */
            if (ftruncate(transfer->output, transfer->position = 0) < 0)
                return error_set_errno(error, "start the download anew");
            continue;
        }
        int64_t wait = transfer->retry_after_ms > delay ? transfer->retry_after_ms : delay;
        if (wait > delay && ordered + wait <= ORDERED_MAX_MS)
            ordered += wait; /* not counted against the patience: the hub limits requests per five minutes */
        if (!may_pass(&cause) || clock_monotonic_ms() + wait - progress_ms - ordered > patience)
            return error_set(error, cause.kind, "%s", cause.message);
        usleep((useconds_t)(wait * 1000));
    }
}

/* ---------------------------------------------------------------- one file */

static char *beside(const char *path, const char *prefix)
{
    const char *name = strrchr(path, '/') + 1;
    return memory_format("%.*s%s%s", (int)(name - path), path, prefix, name);
}

/* Returns the text that `.verified-NAME` should have; NULL if there is no file. */
static char *verification(const char *path, const char *digest)
{
    struct stat status;
    if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
        return NULL;
    return memory_format("%s %" PRId64 " %" PRId64 ".%09ld\n", digest, (int64_t)status.st_size,
                         (int64_t)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

/* Refuses links, which other pods may have made to other files, and FIFOs, which would block while the lock is held. */
static bool read_own(struct buffer *buffer, const char *path)
{
    off_t size;
    SCOPED_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    return file >= 0 && regular_file_check(file, path, &size, NULL) == 0 &&
           buffer_read_descriptor(buffer, file, path, NULL) == 0;
}

/* Errors are not reported: without the file, a later download only takes longer. */
static void write_own(const struct buffer *buffer, const char *path)
{
    SCOPED_FREE char *draft = memory_format("%s.draft", path);
    unlink(draft);
    SCOPED_CLOSE int file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0 || write(file, buffer->data, buffer->length) != (ssize_t)buffer->length || rename(draft, path) < 0)
        unlink(draft);
}

static void note_verified(const char *path, const char *digest)
{
    SCOPED_FREE char *text = verification(path, digest), *note = beside(path, HUB_VERIFIED_PREFIX);
    SCOPED_BUFFER buffer;
    buffer_init(&buffer, SMALL_FILE_MAX);
    if (text && buffer_append_string(&buffer, text, NULL) == 0)
        write_own(&buffer, note);
}

/* Whether the file is there and has its digest. The file is read only if no earlier download has left a note about it. */
static bool is_there(const char *path, const struct wanted *wanted)
{
    SCOPED_FREE char *text = verification(path, wanted->digest), *note = beside(path, HUB_VERIFIED_PREFIX);
    char digest[DIGEST_TEXT_MAX];
    SCOPED_BUFFER buffer;
    buffer_init(&buffer, SMALL_FILE_MAX);
    if (!text)
        return false;
    if (read_own(&buffer, note) && strcmp(buffer_text(&buffer), text) == 0)
        return true;
    if (digest_file(path, wanted->digest_kind, digest, NULL) < 0 || strcmp(digest, wanted->digest) != 0)
        return false;
    note_verified(path, wanted->digest);
    return true;
}

static int check_digest(const char *partial, const struct wanted *wanted, struct error *error)
{
    char digest[DIGEST_TEXT_MAX];
    if (digest_file(partial, wanted->digest_kind, digest, error) < 0)
        return -1;
    if (strcmp(digest, wanted->digest) == 0)
        return 0;
    return error_set(error, ERROR_CORRUPT, "%s has the digest %s instead of %s; %s", wanted->url, digest,
                     wanted->digest,
                     wanted->size == UNKNOWN ? "correct sha256 if the file was meant to change"
                                             : "a server on the way may have changed it: run the job again");
}

/* Downloads and verifies a file. A partial file that an earlier download left may be of another version: if the digest is wrong then,
 * downloads everything again, once. */
static int fill(struct transfer *transfer, const char *partial, struct error *error)
{
    for (bool resumed = transfer->position > 0;; resumed = false) {
        if (transfer_run(transfer, error) < 0)
            return -1;
        if (fsync(transfer->output) < 0)
            return error_set_errno(error, "write %s", partial);
        if (check_digest(partial, transfer->wanted, error) == 0)
            return 0;
        if (!resumed)
            return -1;
        if (ftruncate(transfer->output, transfer->position = 0) < 0)
            return error_set_errno(error, "start the download anew");
    }
}

/* Opens the partial file. Removes it first if it is a link or has several names: writing to it would damage another file. */
static int open_partial(const char *partial, struct stat *ret_status, struct error *error)
{
    if (lstat(partial, ret_status) == 0 && (!S_ISREG(ret_status->st_mode) || ret_status->st_nlink > 1))
        unlink(partial);
    int output = open(partial, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (output >= 0 && fstat(output, ret_status) == 0)
        return output;
    error_set_errno(error, "write %s", partial);
    if (output >= 0)
        close(output);
    return -1;
}

static int get_file(struct downloader *downloader, const struct wanted *wanted, struct error *error)
{
    int64_t ceiling = downloader->request->ceiling;
    SCOPED_FREE char *path = memory_format("%s/%s", downloader->request->folder, wanted->path),
                     *partial = beside(path, S3_PARTIAL_PREFIX),
                     *parent = memory_copy_bytes(path, (size_t)(strrchr(path, '/') - path));
    struct stat status = {0};
    if (is_there(path, wanted)) {
        downloader->result.kept++;
        downloader->used += stat(path, &status) == 0 ? status.st_size : 0;
        return 0;
    }
    if (directory_make(parent, error) < 0)
        return -1;
    SCOPED_CLOSE int output = open_partial(partial, &status, error);
    if (output < 0)
        return -1;
    struct transfer transfer = {.downloader = downloader,
                                .wanted = wanted,
                                .output = output,
                                .position = status.st_size,
                                .ceiling = ceiling > 0 ? ceiling - downloader->used : INT64_MAX};
    int filled = fill(&transfer, partial, error);
    if (filled < 0 && (error->kind == ERROR_CORRUPT || error->kind == ERROR_TOO_LARGE))
        unlink(partial);
    if (filled == 0 && rename(partial, path) < 0)
        filled = error_set_errno(error, "rename %s", partial);
    if (filled < 0 &&
        !is_there(path, wanted)) /* another node may have downloaded it, if flock does not work between nodes */
        return -1;
    downloader->used += transfer.position;
    downloader->result.files++;
    note_verified(path, wanted->digest);
    return 0;
}

/* ---------------------------------------------------------------- sources */

/* Creates a folder in the volume and waits for its lock, which is released when the descriptor is closed, or the process ends. */
static int lock(const struct download_request *request, const char *below, int *ret_descriptor, struct error *error)
{
    SCOPED_FREE char *folder = memory_format("%s/%s", request->folder, below),
                     *path = memory_format("%s/" LOCK_NAME, folder);
    if (directory_make(folder, error) < 0)
        return -1;
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) /* another user's, or on a read-only volume: the files may be there nevertheless */
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0)
        return error_set_errno(error, "write %s", path);
    for (int64_t waited = 0; flock(descriptor, LOCK_EX | LOCK_NB) < 0; waited += LOCK_POLL_MS) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            error_set_errno(error, "lock %s: the file system of the volume has no flock; use another", path);
            close(descriptor);
            return -1;
        }
        if (waited % REPORT_MS == 0 && request->report)
            request->report(NULL, 0, UNKNOWN, UNKNOWN);
        usleep(LOCK_POLL_MS * 1000);
    }
    *ret_descriptor = descriptor;
    return 0;
}

static const char hub_scheme[] = "hf://", web_scheme[] = "https://", digest_mark[] = "#sha256=";

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int get_web(struct downloader *downloader, const char *source, struct error *error)
{
    const char *mark = strstr(source, digest_mark);
    if (!mark || !hub_is_digest(mark + strlen(digest_mark), SHA256_DIGITS))
        return error_set(error, ERROR_INVALID, "%s: give its SHA-256, 64 lower-case hexadecimal digits", source);
    SCOPED_FREE char *url = memory_copy_bytes(source, (size_t)(mark - source));
    const char *rest = url + strlen(web_scheme);
    SCOPED_FREE char *path = memory_copy_bytes(rest, strcspn(rest, "?#"));
    if (!strchr(path, '/') || !fetch_path_is_safe(path))
        return error_set(error, ERROR_INVALID, "%s does not end in the name of a file", url);
    struct wanted wanted = {.url = url, .path = path, .digest = mark + strlen(digest_mark), .size = UNKNOWN};
    SCOPED_FREE char *parent = memory_copy_bytes(path, (size_t)(strrchr(path, '/') - path));
    SCOPED_CLOSE int held = -1;
    if (lock(downloader->request, parent, &held, error) < 0)
        return -1;
    return get_file(downloader, &wanted, error);
}

/* The parts of a source of the hub. */
struct repository {
    char *kind, *name, *revision; /* such as "models", "org/name", "main" */
    char *folder;                 /* the source without the scheme and the pattern */
    char *pattern;                /* "": all files */
};

static void repository_release(struct repository *repository)
{
    free(repository->kind);
    free(repository->name);
    free(repository->revision);
    free(repository->folder);
    free(repository->pattern);
}

static bool is_hub_word(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
            return false;
    return length > 0 && *text != '.';
}

static int divide(const char *source, struct repository *ret_repository, struct error *error)
{
    static const char datasets[] = "datasets/";
    const char *whole = source + strlen(hub_scheme), *rest = whole;
    bool is_dataset = begins(rest, datasets);
    const char *organisation = rest += is_dataset ? strlen(datasets) : 0;
    const char *name = organisation + strcspn(organisation, "/");
    size_t organisation_length = (size_t)(name - organisation), name_length;
    name += *name == '/';
    name_length = strcspn(name, "@/");
    const char *revision = name + name_length;
    size_t revision_length = *revision == '@' ? strcspn(revision + 1, "/") : 0;
    const char *end = revision + (*revision == '@' ? 1 + revision_length : 0);
    if (!is_hub_word(organisation, organisation_length) || !is_hub_word(name, name_length) ||
        (*revision == '@' && !is_hub_word(revision + 1, revision_length)))
        return error_set(error, ERROR_INVALID, "%s: write hf://ORGANISATION/NAME@REVISION", source);
    *ret_repository = (struct repository){
        .kind = memory_copy_string(is_dataset ? "datasets" : "models"),
        .name = memory_copy_bytes(organisation, (size_t)(revision - organisation)),
        .revision = revision_length ? memory_copy_bytes(revision + 1, revision_length) : memory_copy_string("main"),
        .folder = memory_copy_bytes(whole, (size_t)(end - whole)),
        .pattern = memory_copy_string(*end == '/' ? end + 1 : ""),
    };
    char *pattern = ret_repository->pattern; /* a folder may end in slashes */
    for (size_t length = strlen(pattern); length > 0 && pattern[length - 1] == '/'; length--)
        pattern[length - 1] = '\0';
    return 0;
}

/* Parses the hub's list. If the revision is a commit, the list must be of that commit. */
static int parse_listing(const struct buffer *text, const struct repository *repository,
                         struct hub_listing *ret_listing, struct error *error)
{
    SCOPED(hub_listing_release) struct hub_listing listing = {0};
    if (hub_listing_parse(buffer_text(text), text->length, &listing, error) < 0)
        return -1;
    if (hub_is_digest(repository->revision, SHA1_DIGITS) && strcmp(listing.commit, repository->revision) != 0)
        return error_set(error, ERROR_CORRUPT, "%s: the hub answers with the commit %s instead of %s", repository->name,
                         listing.commit, repository->revision);
    *ret_listing = listing;
    listing = (struct hub_listing){0};
    return 0;
}

/* Reads the kept list if the revision is a commit; otherwise asks the hub, keeps its list, and reads the kept one only if the hub is away. */
static int get_listing(struct downloader *downloader, const struct repository *repository,
                       struct hub_listing *ret_listing, struct error *error)
{
    SCOPED_FREE char *url = memory_format("%s/api/%s/%s/revision/%s?blobs=true", downloader->hub, repository->kind,
                                          repository->name, repository->revision),
                     *path = memory_format("%s/%s/" LISTING_NAME, downloader->request->folder, repository->folder);
    struct wanted wanted = {.url = url, .path = repository->name, .size = UNKNOWN};
    struct transfer transfer = {.downloader = downloader, .wanted = &wanted, .output = -1};
    SCOPED_BUFFER kept;
    struct error cause = ERROR_INIT;
    buffer_init(&kept, HUB_LISTING_MAX);
    buffer_init(&transfer.body, HUB_LISTING_MAX);
    bool has_kept = read_own(&kept, path);
    if (has_kept && hub_is_digest(repository->revision, SHA1_DIGITS) &&
        parse_listing(&kept, repository, ret_listing, NULL) == 0)
        return 0;
    int result = transfer_run(&transfer, &cause);
    if (result == 0 && (result = parse_listing(&transfer.body, repository, ret_listing, &cause)) == 0)
        write_own(&transfer.body, path);
    else if (has_kept && may_pass(&cause))
        result = parse_listing(&kept, repository, ret_listing, NULL);
    buffer_release(&transfer.body);
    return result == 0 ? 0 : error_set(error, cause.kind, "%s", cause.message);
}

static bool is_selected(const struct hub_file *file, const struct repository *repository)
{
    return fetch_path_matches(file->path, repository->pattern, true);
}

static int check_sizes(struct downloader *downloader, const struct hub_listing *listing,
                       const struct repository *repository, struct error *error)
{
    const struct download_request *request = downloader->request;
    int64_t bytes = 0, missing = 0;
    struct statvfs disk;
    struct stat status;
    size_t found = 0;
    for (size_t i = 0; i < listing->count; i++) {
        const struct hub_file *file = &listing->files[i];
        SCOPED_FREE char *path = memory_format("%s/%s/%s", request->folder, repository->folder, file->path),
                         *partial = beside(path, S3_PARTIAL_PREFIX);
        if (!is_selected(file, repository))
            continue;
        found++;
        bytes = bytes > INT64_MAX - file->size ? INT64_MAX : bytes + file->size;
        int64_t there = stat(path, &status) == 0 || stat(partial, &status) == 0 ? status.st_size : 0;
        int64_t left = file->size > there ? file->size - there : 0;
        missing = missing > INT64_MAX - left ? INT64_MAX : missing + left;
    }
    if (found == 0)
        return error_set(error, ERROR_NOT_FOUND, "%s has no file \"%s\" in the revision %s", repository->name,
                         repository->pattern, repository->revision);
    if (request->ceiling > 0 && bytes > request->ceiling - downloader->used)
        return error_set(error, ERROR_TOO_LARGE,
                         "%s has %" PRId64 " bytes, and all files may have %" PRId64
                         "; raise sizeLimit, or choose fewer files: hf://%s/*.safetensors",
                         repository->name, bytes, request->ceiling, repository->folder);
    if (statvfs(request->folder, &disk) == 0 && disk.f_blocks > 0 && /* some file systems report 0 */
        (uint64_t)missing / disk.f_frsize > disk.f_bavail)
        return error_set(error, ERROR_NO_SPACE,
                         "%s needs %" PRId64 " more bytes, and the volume has %" PRIu64
                         "; give the claim more storage, or remove files",
                         repository->name, missing, (uint64_t)disk.f_bavail * disk.f_frsize);
    return 0;
}

static int get_hub_file(struct downloader *downloader, const struct repository *repository, const char *commit,
                        const struct hub_file *file, struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/%s", repository->folder, file->path);
    SCOPED_BUFFER url;
    buffer_init(&url, URL_MAX);
    buffer_format(&url, "%s/%s%s/resolve/%s/", downloader->hub,
                  strcmp(repository->kind, "datasets") == 0 ? "datasets/" : "", repository->name, commit);
    if (percent_encode(&url, file->path, "/", error) < 0)
        return -1;
    struct wanted wanted = {buffer_text(&url), path, file->digest_kind, file->digest, file->size};
    return get_file(downloader, &wanted, error);
}

static int get_repository(struct downloader *downloader, const char *source, struct error *error)
{
    SCOPED(repository_release) struct repository repository = {0};
    SCOPED(hub_listing_release) struct hub_listing listing = {0};
    SCOPED_CLOSE int held = -1;
    if (divide(source, &repository, error) < 0 || lock(downloader->request, repository.folder, &held, error) < 0 ||
        get_listing(downloader, &repository, &listing, error) < 0 ||
        check_sizes(downloader, &listing, &repository, error) < 0)
        return -1;
    for (size_t i = 0; i < listing.count; i++) {
        const struct hub_file *file = &listing.files[i];
        if (is_selected(file, &repository) && get_hub_file(downloader, &repository, listing.commit, file, error) < 0)
            return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- all sources */

/* Returns NULL if there is no such file. */
static char *read_secret(const char *folder, const char *name)
{
    if (!folder)
        return NULL;
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    SCOPED_BUFFER text;
    buffer_init(&text, SMALL_FILE_MAX);
    return buffer_read_file(&text, path, NULL) < 0 ? NULL : memory_copy_string(buffer_text(&text));
}

/* Checks the schemes and, if there is a token, that all sources are on one host: a token is for one host. */
static int check_sources(const struct downloader *downloader, struct error *error)
{
    const struct download_request *request = downloader->request;
    const char *first = NULL;
    for (size_t i = 0; i < request->source_count; i++) {
        const char *source = request->sources[i], *host;
        if (!begins(source, hub_scheme) && !begins(source, web_scheme))
            return error_set(
                error, ERROR_INVALID,
                "%s begins neither with hf:// nor with https://; storage[].s3 is for buckets, storage[].image "
                "for OCI artifacts",
                source);
        host = strstr(begins(source, hub_scheme) ? downloader->hub : source, "://");
        if (!first)
            first = host;
        size_t length = strcspn(host + 3, "/") + 3;
        if (downloader->token && (strcspn(first + 3, "/") + 3 != length || strncmp(first, host, length) != 0))
            return error_set(error, ERROR_INVALID,
                             "the sources are of several hosts, and the token of secretRef is for one; give each host "
                             "a storage of its own");
    }
    return 0;
}

static int get_all(struct downloader *downloader, struct error *error)
{
    const struct download_request *request = downloader->request;
    if (check_sources(downloader, error) < 0)
        return -1;
    for (size_t i = 0; i < request->source_count; i++) {
        const char *source = request->sources[i];
        if ((begins(source, hub_scheme) ? get_repository : get_web)(downloader, source, error) < 0)
            return -1;
    }
    return 0;
}

int download(const struct download_request *request, struct download_result *ret_result, struct error *error)
{
    struct downloader downloader = {.request = request, .hub = request->hub ? request->hub : DOWNLOAD_HUB};
    SCOPED_FREE char *authority = read_secret(request->secrets, "ca.crt"), *hub = memory_copy_string(downloader.hub);
    struct http_client_options options = {.ca_pem = authority, .user_agent = "coxswain"};
    if (!begins(hub, web_scheme) && !begins(hub, "http://"))
        return error_set(error, ERROR_INVALID, "the address of the hub is \"%s\"; it must begin with https://", hub);
    if (hub[strlen(hub) - 1] == '/')
        hub[strlen(hub) - 1] = '\0';
    downloader.hub = hub;
    if (event_loop_new(&downloader.loop, error) < 0)
        return -1;
    int result = http_client_new(downloader.loop, &options, &downloader.client, error);
    if (result == 0) {
        downloader.token = read_secret(request->secrets, "token");
        if (downloader.token)
            downloader.token[strcspn(downloader.token, "\r\n")] = '\0';
        result = get_all(&downloader, error);
    }
    free(downloader.token);
    http_client_free(downloader.client);
    event_loop_free(downloader.loop);
    if (result == 0)
        *ret_result = downloader.result;
    return result;
}
