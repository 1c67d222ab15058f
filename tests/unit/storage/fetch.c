/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/fetch.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "common/directory.h"
#include "common/memory.h"
#include "tests/unit/s3_server.h"

Test(fetch, keys_outside_the_folder_are_refused)
{
    static const char *const unsafe[] = {"",     "/",      "/a", "a//b",  "..", "a/..",
                                         "../a", "a/../b", ".",  "a/./b", "a/", "a/.partial-0"};
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        cr_assert_not(fetch_path_is_safe(unsafe[i]), "%s", unsafe[i]);
    static const char *const safe[] = {"a", "a/b", "..a", "a..", "...", ".a/b c", ".partial"};
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        cr_assert(fetch_path_is_safe(safe[i]), "%s", safe[i]);
}

static const char *content = "first";
static const char *size = "5";

static void serve(struct scripted_request *request)
{
    char text[512];
    if (strstr(request->line, "list-type=2")) {
        snprintf(text, sizeof text,
                 "<ListBucketResult><Contents><Key>a</Key><ETag>&quot;%s&quot;</ETag><Size>%s</Size></Contents>"
                 "<Contents><Key>b</Key><ETag>&quot;b&quot;</ETag><Size>%s</Size></Contents></ListBucketResult>",
                 content, size, size);
        scripted_reply(request, 200, text);
    } else {
        scripted_reply(request, 206, content);
    }
}

static void write_file(const char *path)
{
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs("half", file) >= 0);
    fclose(file);
}

Test(fetch, a_folder_is_brought_up_to_date, .timeout = 60)
{
    static struct scripted_server server;
    struct error error = ERROR_INIT;
    char folder[] = "/tmp/fetch.XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    SCOPED_FREE char *partial = memory_format("%s/.partial-17", folder), *path = memory_format("%s/a", folder);
    struct s3_client *client = s3_server_start(&server, serve);
    struct fetch_request request = {.prefix = "", .folder = folder, .connections = 1, .ceiling = 8192};
    struct fetch_result result;

    write_file(partial);
    cr_assert_eq(fetch(client, &request, &result, &error), 0, "%s", error.message);
    cr_assert_eq(result.files, 2);
    cr_assert_lt(access(partial, F_OK), 0, "a fetch that was killed has left it");
    cr_assert_eq(fetch(client, &request, &result, &error), 0, "%s", error.message);
    cr_assert_eq(result.kept, 2);
    content = "other"; /* of the same size */
    cr_assert_eq(fetch(client, &request, &result, &error), 0, "%s", error.message);
    cr_assert_eq(result.files, 1);
    char text[6] = "";
    FILE *file = fopen(path, "r");
    cr_assert(file && fgets(text, sizeof text, file));
    cr_assert_str_eq(text, "other");
    fclose(file);

    request.ceiling = 8191;
    cr_assert_lt(fetch(client, &request, &result, &error), 0);
    cr_assert_eq(error.kind, ERROR_TOO_LARGE, "files take whole blocks of the disk: %s", error.message);
    size = "9223372036854775807";
    cr_assert_lt(fetch(client, &request, &result, &error), 0);
    cr_assert_eq(error.kind, ERROR_CORRUPT, "sizes must not overflow: %s", error.message);

    s3_client_free(client);
    scripted_server_stop(&server);
    directory_remove(folder);
}
