/* SPDX-License-Identifier: Apache-2.0
 *
 * Downloads, with a server of this test as the mirror.
 */
#include "operator/cli/dataset.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/directory.h"
#include "common/memory.h"
#include "common/scope.h"
#include "tests/unit/scripted_server.h"

#define CONTENTS "seven\n"
#define DIGEST "92107d54bb00a88f7223acaefe20ce92b9873c00951c88ecafc3145afc54836c"

static const struct dataset sevens = {
    .name = "sevens",
    .files = {{.path = "set/seven", .name = "seven.txt", .sha256 = DIGEST, .packed_max = 64, .unpacked_size = 64}},
};

static struct event_loop *loop;
static struct scripted_server server;
static char home[] = "/tmp/cox-dataset-XXXXXX";
static char *cache, *kept, *partial;

static void setup(void)
{
    cr_assert(mkdtemp(home));
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
    setenv("XDG_CACHE_HOME", home, 1);
    unsetenv("COXSWAIN_DATA");
    cache = memory_format("%s/coxswain/data", home);
    kept = memory_format("%s/set/seven", cache);
    partial = memory_format("%s.part", kept);
}

static void teardown(void)
{
    event_loop_free(loop);
    if (server.port)
        scripted_server_stop(&server);
    directory_remove(home);
    free(cache);
    free(kept);
    free(partial);
}

TestSuite(dataset, .init = setup, .fini = teardown, .timeout = 120);

static void serve(scripted_handler *handler)
{
    scripted_server_start(&server, handler, NULL);
    SCOPED_FREE char *mirror = memory_format("http://127.0.0.1:%d/pub", server.port);
    setenv("COXSWAIN_MIRROR", mirror, 1);
}

static bool exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

static void check_fails(dataset_progress *progress, enum error_kind kind, const char *words)
{
    char *directory = NULL;
    struct error error = ERROR_INIT;
    cr_assert_lt(dataset_obtain(&sevens, loop, progress, NULL, &directory, &error), 0);
    cr_assert_eq(error.kind, kind, "%s", error.message);
    cr_assert(strstr(error.message, words), "%s", error.message);
    cr_assert_not(exists(kept));
    cr_assert_not(exists(partial), "nothing half stays behind");
}

static void say_seven(struct scripted_request *request)
{
    scripted_reply(request, 200, CONTENTS);
}

static int64_t last_received, last_total;
static bool note_progress(void *context, const char *file, int64_t received, int64_t total)
{
    (void)context;
    cr_assert_str_eq(file, "seven.txt");
    last_received = received;
    last_total = total;
    return true;
}

Test(dataset, is_downloaded_once)
{
    serve(say_seven);
    for (int i = 0; i < 2; i++) {
        SCOPED_FREE char *directory = NULL;
        struct error error = ERROR_INIT;
        cr_assert_eq(dataset_obtain(&sevens, loop, note_progress, NULL, &directory, &error), 0, "%s", error.message);
        cr_assert_str_eq(directory, cache);
        cr_assert(exists(kept));
        cr_assert_not(exists(partial));
    }
    cr_assert_eq(server.requests, 1);
    cr_assert_str_eq(server.log[0], "GET /pub/seven.txt");
    cr_assert_eq(last_received, (int64_t)strlen(CONTENTS));
    cr_assert_eq(last_total, (int64_t)strlen(CONTENTS));
}

static void redirect(struct scripted_request *request)
{
    if (strstr(request->line, "/elsewhere"))
        scripted_reply(request, 200, CONTENTS);
    else
        scripted_reply_with(request, 302, "Location: /elsewhere\r\n", "");
}

Test(dataset, redirects_are_followed)
{
    SCOPED_FREE char *directory = NULL;
    serve(redirect);
    cr_assert_eq(dataset_obtain(&sevens, loop, NULL, NULL, &directory, NULL), 0);
}

static void say_eight(struct scripted_request *request)
{
    scripted_reply(request, 200, "eight\n");
}

Test(dataset, another_digest_is_refused)
{
    serve(say_eight);
    check_fails(NULL, ERROR_UNAVAILABLE, "is not the expected file");
}

static void say_too_much(struct scripted_request *request)
{
    char much[1024];
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    scripted_reply(request, 200, much);
}

Test(dataset, too_much_is_refused)
{
    serve(say_too_much);
    check_fails(NULL, ERROR_UNAVAILABLE, "the server sent more than 64 bytes");
}

static void say_nothing_there(struct scripted_request *request)
{
    scripted_reply(request, 404, "no such file");
}

Test(dataset, an_answer_that_is_no_file_is_said)
{
    serve(say_nothing_there);
    check_fails(NULL, ERROR_UNAVAILABLE, "answered with HTTP status 404");
}

static void cut_off(struct scripted_request *request)
{
    scripted_send(request, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsev");
    request->close = true;
}

Test(dataset, where_a_download_failed_is_said_once)
{
    setenv("COXSWAIN_MIRROR", "http://127.0.0.1:1/pub", 1); /* nobody listens there */
    struct error error = ERROR_INIT;
    char *directory = NULL;
    cr_assert_lt(dataset_obtain(&sevens, loop, NULL, NULL, &directory, &error), 0);
    const char *once = strstr(error.message, "seven.txt");
    cr_assert(once && !strstr(once + 1, "seven.txt"), "%s", error.message);
}

Test(dataset, a_cut_download_leaves_nothing)
{
    serve(cut_off);
    check_fails(NULL, ERROR_UNAVAILABLE, "seven.txt");
}

static void stall(struct scripted_request *request)
{
    scripted_send(request, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsev");
    scripted_hold(request);
}

static bool give_up(void *context, const char *file, int64_t received, int64_t total)
{
    (void)context, (void)file, (void)total;
    return received == 0;
}

Test(dataset, an_interrupted_download_leaves_nothing)
{
    serve(stall);
    check_fails(give_up, ERROR_CANCELLED, "interrupted");
}

Test(dataset, a_named_directory_must_hold_the_right_files)
{
    char *directory = NULL;
    struct error error = ERROR_INIT;
    setenv("COXSWAIN_DATA", home, 1);
    cr_assert_lt(dataset_obtain(&sevens, loop, NULL, NULL, &directory, &error), 0);
    cr_assert_eq(error.kind, ERROR_NOT_FOUND, "%s", error.message);
    SCOPED_FREE char *below = memory_format("%s/set", home);
    SCOPED_FREE char *path = memory_format("%s/seven", below);
    cr_assert_eq(directory_make(below, NULL), 0);
    FILE *file = fopen(path, "w");
    fputs("eight\n", file);
    fclose(file);
    cr_assert_lt(dataset_obtain(&sevens, loop, NULL, NULL, &directory, &error), 0);
    cr_assert_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
}

Test(dataset, the_digits_are_known)
{
    cr_assert(dataset_find("digits"));
    cr_assert_null(dataset_find("letters"));
}
