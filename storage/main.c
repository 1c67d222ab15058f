/* SPDX-License-Identifier: Apache-2.0
 *
 * coxswain-storage: copies files between a pod and object storage, and downloads files into a volume. The operator runs it in the pods of
 * jobs whose storage is a bucket or has a section download. It can also be run by hand, for example to list a bucket.
 */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/contract/exit_code.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/s3_client.h"
#include "common/s3_transfer.h"
#include "common/terminal_text.h"
#include "common/version.h"
#include "storage/download.h"
#include "storage/fetch.h"
#include "storage/sync.h"

#define PATIENCE_MS 120000
#define EXIT_USAGE 64
#define CONNECTIONS_DEFAULT 16
#define SYNC_SECONDS_DEFAULT 10
#define FINAL_ROUNDS 3
#define LISTED_MAX ((size_t)10000000)

static const char usage[] =
    "usage: coxswain-storage fetch FOLDER [PATH…]       copy all objects below the prefix, or at these paths, into a "
    "folder\n"
    "       coxswain-storage download FOLDER SOURCE…    download hf://ORG/NAME@REVISION or https://…#sha256=DIGEST "
    "into a\n"
    "                                                   folder, which several may share; no bucket is needed\n"
    "       coxswain-storage restore FOLDER             copy what sync has uploaded and is complete into a folder\n"
    "       coxswain-storage sync FOLDER                upload what is new or has changed, until SIGTERM\n"
    "       coxswain-storage get KEY FILE               copy one object\n"
    "       coxswain-storage put FILE KEY [--if-absent] write one; with --if-absent exit 3 if there is an object of "
    "that name\n"
    "       coxswain-storage list [PREFIX]              sizes and keys\n"
    "       coxswain-storage remove KEY…                no error if there is none\n"
    "\n"
    "  --endpoint URL        https://host or http://host:port\n"
    "  --bucket NAME\n"
    "  --region NAME         (default: us-east-1; auto for endpoints at googleapis.com)\n"
    "  --prefix TEXT         of fetch, restore and sync: the objects' keys begin with it and a slash\n"
    "  --credentials FOLDER  with the files AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if needed, AWS_SESSION_TOKEN "
    "and ca.crt\n"
    "                        (CA certificates of the endpoint, and of the server that AWS_ENDPOINT_URL_STS names);\n"
    "                        without it, or for files that are not there, variables of the same names; without keys\n"
    "                        the identity of the pod's service account, if AWS_CONTAINER_CREDENTIALS_FULL_URI, or\n"
    "                        AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE give one;\n"
    "                        for download, with the files token and ca.crt, if needed\n"
    "  --hub URL             of download: the hub's address (default: " DOWNLOAD_HUB ")\n"
    "  --claim               of restore: stop the uploads of other pods to this prefix first\n"
    "  --checkpoints PATH    of sync: the folder whose entries are checkpoints (default: the whole folder)\n"
    "  --settle SECONDS      of sync: how long a file has to be unchanged before it is uploaded (default: 10)\n"
    "  --interval SECONDS    of sync: between two looks at the folder (default: 10)\n"
    "  --delete-removed      of sync: remove the objects of files that are removed\n"
    "  --ceiling BYTES       of fetch, restore and download: fail rather than copy more (default: no ceiling)\n"
    "  --connections N       at most 64 (default: 16)\n"
    "  --patience SECONDS    how long a request that fails temporarily is repeated without progress (default: 120)\n"
    "  --log-format WORD     text or json (default: text)\n"
    "  --help, --version\n";

struct options {
    struct s3_options s3;
    const char *prefix, *hub, *checkpoints;
    int64_t ceiling, connections, settle_seconds, interval_seconds;
    bool if_absent, delete_removed, claim;
};

static int refuse_option(const char *option, const char *advice)
{
    fprintf(stderr, "coxswain-storage: %s: %s; see --help\n", option, advice);
    return -1;
}

static int read_number(const char *option, const char *text, int64_t least, int64_t most, int64_t *ret_number)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (*text == '\0' || *end || number < least || number > most) {
        SCOPED_FREE char *advice = memory_format("give a number from %" PRId64 " to %" PRId64, least, most);
        return refuse_option(option, advice);
    }
    *ret_number = number;
    return 0;
}

static int read_option(struct options *options, int option, char *text)
{
    enum log_format format;
    switch (option) {
    case 'e':
        options->s3.endpoint = text;
        return 0;
    case 'b':
        options->s3.bucket = text;
        return 0;
    case 'r':
        options->s3.region = text;
        return 0;
    case 'p':
        options->prefix = text;
        return 0;
    case 'u':
        options->hub = text;
        return 0;
    case 'c':
        options->s3.credentials = text;
        return 0;
    case 'm':
        return read_number("--ceiling", text, 1, INT64_MAX, &options->ceiling);
    case 'n':
        return read_number("--connections", text, 1, S3_CONNECTIONS_MAX, &options->connections);
    case 't':
        if (read_number("--patience", text, 1, 86400, &options->s3.patience_ms) < 0)
            return -1;
        options->s3.patience_ms *= 1000;
        return 0;
    case 'a':
        options->if_absent = true;
        return 0;
    case 'k':
        options->checkpoints = text;
        return 0;
    case 's':
        return read_number("--settle", text, 1, 86400, &options->settle_seconds);
    case 'i':
        return read_number("--interval", text, 1, 86400, &options->interval_seconds);
    case 'w':
        options->claim = true;
        return 0;
    case 'd':
        options->delete_removed = true;
        return 0;
    case 'f':
        if (!log_format_parse(text, &format))
            return refuse_option("--log-format", "write text or json");
        log_configure(LOG_INFO, format);
        return 0;
    default:
        return -1;
    }
}

static int read_options(int count, char **arguments, struct options *options)
{
    static const struct option table[] = {{"endpoint", required_argument, NULL, 'e'},
                                          {"bucket", required_argument, NULL, 'b'},
                                          {"region", required_argument, NULL, 'r'},
                                          {"prefix", required_argument, NULL, 'p'},
                                          {"hub", required_argument, NULL, 'u'},
                                          {"credentials", required_argument, NULL, 'c'},
                                          {"ceiling", required_argument, NULL, 'm'},
                                          {"connections", required_argument, NULL, 'n'},
                                          {"patience", required_argument, NULL, 't'},
                                          {"if-absent", no_argument, NULL, 'a'},
                                          {"log-format", required_argument, NULL, 'f'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'v'},
                                          {"checkpoints", required_argument, NULL, 'k'},
                                          {"settle", required_argument, NULL, 's'},
                                          {"interval", required_argument, NULL, 'i'},
                                          {"delete-removed", no_argument, NULL, 'd'},
                                          {"claim", no_argument, NULL, 'w'},
                                          {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(count, arguments, "", table, NULL)) != -1;) {
        if (option == 'h' || option == 'v') {
            fputs(option == 'h' ? usage : "coxswain-storage " COXSWAIN_VERSION "\n", stdout);
            exit(0);
        }
        if (read_option(options, option, optarg) < 0)
            return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- commands */

struct command_line {
    struct s3_client *client;
    const struct options *options;
    char **words; /* after the command */
    int count;
    bool restore; /* fetch only what is complete */
};

static void log_complete(const char *folder, size_t fetched, size_t there, int64_t transferred, int64_t begin_ms)
{
    char duration[32];
    clock_format_duration(clock_monotonic_ms() - begin_ms, duration, sizeof duration);
    SCOPED_FREE char *files = memory_format("%zu", fetched), *kept = memory_format("%zu", there),
                     *bytes = memory_format("%" PRId64, transferred);
    log_info("the files are complete", "folder", folder, "fetched", files, "already_there", kept, "bytes", bytes,
             "after", duration, NULL);
}

static int command_fetch(const struct command_line *line, struct error *error)
{
    struct fetch_request request = {.prefix = line->options->prefix,
                                    .folder = line->words[0],
                                    .ceiling = line->options->ceiling,
                                    .connections = (unsigned)line->options->connections};
    for (int i = 1; i < line->count; i++) /* at most FETCH_PATHS_MAX, see `commands` */
        request.paths[request.path_count++] = line->words[i];
    struct fetch_result result = {0};
    int64_t begin_ms = clock_monotonic_ms();
    if ((line->restore ? sync_restore : fetch)(line->client, &request, &result, error) < 0)
        return -1;
    log_complete(request.folder, result.files, result.kept, result.bytes, begin_ms);
    return 0;
}

static struct sync_options sync_options(const struct command_line *line, const char *writer)
{
    const struct options *options = line->options;
    return (struct sync_options){.folder = line->words[0],
                                 .prefix = options->prefix,
                                 .checkpoints = options->checkpoints,
                                 .writer = writer,
                                 .settle_ms = options->settle_seconds * 1000,
                                 .connections = (unsigned)options->connections,
                                 .delete_removed = options->delete_removed};
}

/* A name that each pod of each job has for itself. NULL without an operator. */
static char *writer_name(void)
{
    const char *uid = getenv(ENV_JOB_UID), *attempt = getenv(ENV_ATTEMPT), *incarnation = getenv(ENV_INCARNATION);
    return uid && attempt && incarnation ? memory_format("%s-%s-%s", uid, attempt, incarnation) : NULL;
}

static int claim_prefix(const struct command_line *line, struct error *error)
{
    SCOPED_FREE char *writer = writer_name();
    struct sync_options options = sync_options(line, writer);
    struct sync *sync = NULL;
    if (sync_start(line->client, &options, &sync, error) < 0)
        return -1;
    sync_free(sync);
    return 0;
}

static int command_restore(const struct command_line *line, struct error *error)
{
    struct command_line restore = *line;
    if (line->options->claim && claim_prefix(line, error) < 0)
        return -1;
    restore.restore = true;
    return command_fetch(&restore, error);
}

/* What is said of an unfinished checkpoint, or of an error, is said once until it changes. */
static void log_round(const struct sync_result *result, const struct error *error, char **said)
{
    const char *text = *error->message      ? error->message
                       : result->incomplete ? result->incomplete
                       : result->restless   ? result->restless
                                            : "";
    if (result->files > 0 || result->removed > 0) {
        SCOPED_FREE char *files = memory_format("%zu", result->files), *removed = memory_format("%zu", result->removed),
                         *bytes = memory_format("%" PRId64, result->bytes);
        log_info("uploaded", "files", files, "bytes", bytes, "removed", removed, NULL);
    }
    if (strcmp(text, *said) == 0)
        return;
    free(*said);
    *said = memory_copy_string(text);
    if (*error->message)
        log_warning("cannot upload the folder; trying again", "error", error->message, NULL);
    else if (result->incomplete)
        log_warning("a checkpoint is not uploaded, because the file that its writer writes last is missing", "file",
                    result->incomplete, NULL);
    else if (result->restless)
        log_warning("files are not uploaded, because this one beside them changes all the time; write it elsewhere, or "
                    "name it .log",
                    "file", result->restless, NULL);
}

/* Returns whether SIGTERM or SIGINT, which are blocked, has come within this time. */
static bool is_asked_to_end(int64_t seconds)
{
    sigset_t signals;
    struct timespec wait = {.tv_sec = seconds};
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    return sigtimedwait(&signals, NULL, &wait) > 0;
}

/* The last round, when the other programs have ended, decides over the result. */
static int sync_until_end(struct sync *sync, const struct options *options, struct error *error)
{
    SCOPED_FREE char *said = memory_copy_string("");
    int result = 0;
    int64_t wait_seconds = 0; /* the first round is at once: what the program removes later was seen in the folder */
    for (int left = FINAL_ROUNDS; left > 0; wait_seconds = options->interval_seconds) {
        struct sync_result uploaded;
        bool final = left < FINAL_ROUNDS || is_asked_to_end(wait_seconds);
        error_clear(error);
        result = sync_round(sync, final, &uploaded, error);
        log_round(&uploaded, error, &said);
        if (uploaded.superseded) { /* ends no earlier, because a sidecar that ends is started again */
            while (!final && !is_asked_to_end(options->interval_seconds)) {
            }
            return -1; /* what this pod has written since is not saved */
        }
        if (final && result == 0 && uploaded.waiting > 0)
            result = error_set(error, ERROR_UNAVAILABLE,
                               "files in the folder still changed during the last upload, so some are not uploaded; "
                               "end the programs that write them before the pod ends");
        if (final)
            left = result < 0 || uploaded.waiting > 0 ? left - 1 : 0;
    }
    return result;
}

/* Before a thread is started: a signal that comes during a round waits for its end. */
static void block_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

static int command_sync(const struct command_line *line, struct error *error)
{
    SCOPED_FREE char *writer = writer_name();
    struct sync_options options = sync_options(line, writer);
    struct sync *sync = NULL;
    block_signals();
    if (sync_start(line->client, &options, &sync, error) < 0)
        return -1;
    int result = sync_until_end(sync, line->options, error);
    sync_free(sync);
    return result;
}

static void report_download(const char *file, int64_t bytes, int64_t total, int64_t left_ms)
{
    if (!file) {
        log_info("waiting for another pod that downloads into this volume", NULL);
        return;
    }
    char left[32] = "unknown";
    SCOPED_FREE char *done = memory_format("%" PRId64, bytes),
                     *all = total < 0 ? memory_copy_string("unknown") : memory_format("%" PRId64, total);
    if (left_ms >= 0)
        clock_format_duration(left_ms, left, sizeof left);
    log_info("downloading", "file", file, "bytes", done, "of", all, "left", left, NULL);
}

static int command_download(const struct command_line *line, struct error *error)
{
    const struct options *options = line->options;
    struct download_request request = {.folder = line->words[0],
                                       .sources = (const char *const *)line->words + 1,
                                       .source_count = (size_t)line->count - 1,
                                       .hub = options->hub,
                                       .secrets = options->s3.credentials,
                                       .ceiling = options->ceiling,
                                       .patience_ms = options->s3.patience_ms,
                                       .report = report_download};
    struct download_result result;
    int64_t begin_ms = clock_monotonic_ms();
    if (download(&request, &result, error) < 0)
        return -1;
    log_complete(request.folder, result.files, result.kept, result.bytes, begin_ms);
    return 0;
}

static int command_get(const struct command_line *line, struct error *error)
{
    struct s3_head head;
    if (s3_head(line->client, line->words[0], &head, error) < 0)
        return -1;
    struct s3_download file = {line->words[0], head.etag, head.size, line->words[1]};
    return s3_download(line->client, &file, 1, (unsigned)line->options->connections, NULL, error);
}

static int command_put(const struct command_line *line, struct error *error)
{
    const char *file = line->words[0], *key = line->words[1];
    if (!line->options->if_absent)
        return s3_upload(line->client, key, file, (unsigned)line->options->connections, error);
    SCOPED_BUFFER bytes;
    buffer_init(&bytes, (size_t)64 * 1024 * 1024);
    if (buffer_read_file(&bytes, file, error) < 0)
        return -1;
    return s3_put(line->client, key, buffer_text(&bytes), bytes.length, S3_PUT_IF_ABSENT, error);
}

static int command_list(const struct command_line *line, struct error *error)
{
    struct s3_list list;
    if (s3_list(line->client, line->count > 0 ? line->words[0] : "", LISTED_MAX, &list, error) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        struct terminal_text state = {0};
        printf("%" PRId64 " ", list.objects[i].size);
        for (const char *c = list.objects[i].key; *c; c++) /* one line for each object */
            putchar(*c == '\n' ? '?' : terminal_text_next(&state, (unsigned char)*c));
        putchar('\n');
    }
    s3_list_release(&list);
    return 0;
}

static int command_remove(const struct command_line *line, struct error *error)
{
    for (int i = 0; i < line->count; i++)
        if (s3_delete(line->client, line->words[i], error) < 0)
            return -1;
    return 0;
}

static const struct command {
    const char *name;
    int least, most; /* words after it */
    int (*run)(const struct command_line *line, struct error *error);
    bool needs_bucket;
} commands[] = {
    {"download", 2, 1 + DOWNLOAD_SOURCES_MAX, command_download, false},
    {"fetch", 1, 1 + FETCH_PATHS_MAX, command_fetch, true},
    {"get", 2, 2, command_get, true},
    {"put", 2, 2, command_put, true},
    {"list", 0, 1, command_list, true},
    {"remove", 1, 1000, command_remove, true},
    {"restore", 1, 1, command_restore, true},
    {"sync", 1, 1, command_sync, true},
};

static const struct command *find_command(int count, char **words)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (count > 0 && strcmp(commands[i].name, words[0]) == 0 && count - 1 >= commands[i].least &&
            count - 1 <= commands[i].most)
            return &commands[i];
    return NULL;
}

/* With EXIT_CODE_BAD_DATA the job fails, since time does not cure it. With STORAGE_EXIT_REFUSED it fails if it has never run: else the
 * credentials may be about to be replaced. Any other code counts as one failure of the pod. */
static int exit_status(const struct error *error)
{
    switch (error->kind) {
    case ERROR_INVALID:
    case ERROR_NOT_FOUND:
    case ERROR_TOO_LARGE:
    case ERROR_UNSUPPORTED:
        return EXIT_CODE_BAD_DATA;
    case ERROR_FORBIDDEN:
        return STORAGE_EXIT_REFUSED;
    case ERROR_ALREADY_EXISTS:
        return 3;
    default:
        return 1;
    }
}

/* Without a handler the first process of a container ignores SIGTERM, and a deleted pod would stay for its whole grace period. */
static void on_signal(int number)
{
    _exit(128 + number);
}

int main(int count, char **arguments)
{
    struct options options = {.s3.patience_ms = PATIENCE_MS,
                              .prefix = "",
                              .checkpoints = "",
                              .settle_seconds = SYNC_SECONDS_DEFAULT,
                              .interval_seconds = SYNC_SECONDS_DEFAULT,
                              .connections = CONNECTIONS_DEFAULT};
    struct error error = ERROR_INIT;
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    if (read_options(count, arguments, &options) < 0)
        return EXIT_USAGE;
    const struct command *command = find_command(count - optind, arguments + optind);
    if (!command) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    struct command_line line = {.options = &options, .words = arguments + optind + 1, .count = count - optind - 1};
    int result = command->needs_bucket ? s3_client_new(&options.s3, &line.client, &error) : 0;
    if (result == 0) {
        result = command->run(&line, &error);
        if (line.client)
            s3_client_free(line.client);
    }
    if (result == 0)
        return 0;
    log_error(error.message, NULL);
    return exit_status(&error);
}
