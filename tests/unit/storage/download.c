/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/download.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/directory.h"
#include "common/memory.h"
#include "storage/hub_listing.h"
#include "tests/unit/scripted_server.h"
#include "tests/unit/test_certificate.h"

/* Its digests are those of sha256sum and of git hash-object. */
#define CONTENT "0123456789"
#define CONTENT_SHA256 "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
#define CONTENT_GIT "ad471007bd7f5983d273b9584e5629230150fd54"
#define COMMIT "0123456789012345678901234567890123456789"

static struct scripted_server server;
static char folder[64], secrets[64];
static const char *content;
static int cut_after;  /* the first so many answers are cut after 4 bytes */
static bool no_ranges; /* the server answers requests for a range with everything */
static int status;     /* 0: 200 */
static const char *commit;
static int size;
static const char *extra;       /* one more file of the hub's list */
static void (*meanwhile)(void); /* called by the server before it answers with a file */

static void serve(struct scripted_request *request)
{
    char text[1024];
    const char *range = strcasestr(request->head, "Range: bytes=");
    size_t from = range && !no_ranges ? strtoul(range + 13, NULL, 10) : 0, length = strlen(content);
    if (meanwhile && strstr(request->line, "/d/"))
        meanwhile();
    if (status == 429) {
        status = 0;
        scripted_reply_with(request, 429, "Retry-After: 2\r\n", "{}");
    } else if (status) {
        scripted_reply(request, status, "{}");
    } else if (strstr(request->line, "/api/")) {
        snprintf(text, sizeof text,
                 "{\"sha\":\"%s\",\"siblings\":[{\"rfilename\":\"a/w.bin\",\"size\":%d,\"blobId\":\"" COMMIT
                 "\",\"lfs\":{\"sha256\":\"" CONTENT_SHA256 "\"}},"
                 "{\"rfilename\":\"small.txt\",\"size\":10,\"blobId\":\"" CONTENT_GIT "\"},"
                 "{\"rfilename\":\"other.txt\",\"size\":10,\"blobId\":\"" COMMIT "\"}%s]}",
                 commit, size, extra);
        scripted_reply(request, 200, text);
    } else if (from >= length) {
        scripted_reply(request, 416, "");
    } else if (scripted_count(request->server, "GET /") > cut_after) {
        snprintf(text, sizeof text, "Content-Range: bytes %zu-%zu/%zu\r\n", from, length - 1, length);
        scripted_reply_with(request, from ? 206 : 200, from ? text : "", content + from);
    } else {
        snprintf(text, sizeof text, "HTTP/1.1 200 X\r\nContent-Length: %zu\r\n\r\n%.4s", length, content);
        scripted_send(request, text);
        request->close = true;
    }
}

static struct download_request request;
static struct download_result result;
static struct error error;

static int get(const char *source)
{
    error = (struct error)ERROR_INIT;
    request.sources = &source;
    request.source_count = 1;
    request.folder = folder;
    request.patience_ms = 1500;
    return download(&request, &result, &error);
}

static char *url_of(const char *digest)
{
    return memory_format("https://127.0.0.1:%d/d/f.bin%s%s", server.port, digest ? "#sha256=" : "",
                         digest ? digest : "");
}

static char *place(const char *name)
{
    return memory_format("%s/127.0.0.1:%d/d/%s", folder, server.port, name);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0);
    fclose(file);
}

static bool has(const char *path, const char *text)
{
    char read_back[64] = "";
    FILE *file = fopen(path, "r");
    bool same = file && fgets(read_back, sizeof read_back, file) && strcmp(read_back, text) == 0;
    if (file)
        fclose(file);
    return same;
}

static void begin(bool tls)
{
    extra = "", meanwhile = NULL;
    content = CONTENT, commit = COMMIT, cut_after = 0, no_ranges = false, status = 0, size = 10;
    request = (struct download_request){.folder = folder};
    snprintf(folder, sizeof folder, "/tmp/download.XXXXXX");
    snprintf(secrets, sizeof secrets, "/tmp/secrets.XXXXXX");
    cr_assert(mkdtemp(folder) && mkdtemp(secrets));
    struct test_certificate authority = test_certificate_make("authority", NULL, NULL),
                            own = test_certificate_make("server", "IP:127.0.0.1", &authority);
    SCOPED_FREE char *ca = memory_format("%s/ca.crt", secrets);
    write_text(ca, authority.certificate_pem);
    request.secrets = secrets;
    scripted_server_start(&server, serve, tls ? test_tls_server(&own, NULL) : NULL);
    test_certificate_release(&own);
    test_certificate_release(&authority);
}

static void end(void)
{
    scripted_server_stop(&server);
    directory_remove(folder);
    directory_remove(secrets);
}

TestSuite(download, .timeout = 60);

Test(download, a_file_is_downloaded_once)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256), *path = place("f.bin"), *note = place(".verified-f.bin");
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert(has(path, CONTENT) && result.files == 1 && result.bytes == 10);
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert(result.kept == 1 && server.requests == 1);
    unlink(note);
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert_eq(server.requests, 1, "without the note the file itself is read");
    unlink(note);
    cr_assert_eq(mkdir(note, 0700), 0);
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert_eq(server.requests, 1, "also if no note can be written");
    rmdir(note);
    write_text(path, "damaged...");
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert(has(path, CONTENT) && result.files == 1, "a changed file is replaced");
    end();
}

Test(download, a_cut_download_goes_on_where_it_ended)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256), *path = place("f.bin"), *partial = place(".partial-f.bin");
    cut_after = 1;
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert(has(path, CONTENT) && result.bytes == 10, "no byte came twice: %d", (int)result.bytes);

    unlink(path);
    write_text(partial, "0123456");
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert(has(path, CONTENT) && result.bytes == 3, "as after a kill: %d", (int)result.bytes);

    unlink(path);
    write_text(partial, CONTENT);
    cr_assert_eq(get(url), 0, "all bytes were there: %s", error.message);
    cr_assert(has(path, CONTENT) && result.bytes == 0);

    unlink(path);
    write_text(partial, "of another version");
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert(has(path, CONTENT) && result.bytes == 10, "begun anew");

    unlink(path);
    write_text(partial, "01234");
    no_ranges = true;
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert(has(path, CONTENT) && result.bytes == 10, "a server without ranges sends everything");
    end();
}

Test(download, a_server_that_asks_to_wait_is_obeyed)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256);
    status = 429; /* once, with a wait that is longer than the patience */
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert_eq(server.requests, 2);
    end();
}

Test(download, a_server_that_never_sends_a_whole_file_is_given_up)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256);
    cut_after = 1000, no_ranges = true;
    cr_assert_lt(get(url), 0);
    cr_assert_eq(error.kind, ERROR_UNAVAILABLE, "%s", error.message);
    end();
}

Test(download, what_other_pods_leave_in_the_volume_does_no_harm)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256), *path = place("f.bin"), *note = place(".verified-f.bin"),
                     *partial = place(".partial-f.bin"), *victim = place("victim");
    cr_assert_eq(get(url), 0, "%s", error.message);
    write_text(victim, "precious");

    unlink(note);
    cr_assert_eq(mkfifo(note, 0600), 0);
    cr_assert_eq(get(url), 0, "%s", error.message);
    unlink(note);
    cr_assert_eq(symlink(victim, note), 0);
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert(has(victim, "precious"), "a note is not written through a link");

    unlink(path);
    cr_assert_eq(mkfifo(partial, 0600), 0);
    cr_assert_eq(get(url), 0, "%s", error.message);
    unlink(path);
    cr_assert_eq(symlink(victim, partial), 0);
    cr_assert_eq(get(url), 0, "%s", error.message);
    unlink(path);
    cr_assert_eq(link(victim, partial), 0);
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert(has(path, CONTENT) && has(victim, "precious"), "bytes are not written to another name's file");
    end();
}

Test(download, files_that_another_user_downloaded_are_used)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256);
    cr_assert_eq(get(url), 0, "%s", error.message);
    if (getuid() != 0)
        cr_skip_test("only root can become another user");
    chmod(folder, 0755), chmod(secrets, 0755);
    if (fork() == 0)
        _exit(setuid(65534) == 0 && get(url) == 0 && result.kept == 1 ? 0 : 1);
    int code;
    cr_assert(wait(&code) > 0 && WIFEXITED(code) && WEXITSTATUS(code) == 0);
    end();
}

static void download_of_another_job(void)
{
    SCOPED_FREE char *hub = memory_format("https://127.0.0.1:%d", server.port);
    const char *source = "hf://org/name/small.txt";
    struct download_request other = {
        .folder = folder, .sources = &source, .source_count = 1, .hub = hub, .secrets = secrets, .patience_ms = 1500};
    struct download_result got;
    meanwhile = NULL;
    cr_assert_eq(download(&other, &got, NULL), 0);
}

Test(download, jobs_with_other_sources_do_not_wait)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256);
    meanwhile = download_of_another_job;
    cr_assert_eq(get(url), 0, "%s", error.message);
    cr_assert_null(meanwhile);
    end();
}

static void download_without_lock(void)
{
    SCOPED_FREE char *path = place("f.bin"), *partial = place(".partial-f.bin");
    unlink(partial);
    write_text(path, CONTENT);
}

Test(download, another_node_may_be_faster)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256);
    meanwhile = download_without_lock;
    cr_assert_eq(get(url), 0, "%s", error.message);
    end();
}

static void expect_refusal(const char *source, enum error_kind kind, const char *words)
{
    cr_assert_lt(get(source), 0, "%s", words);
    cr_assert_eq(error.kind, kind, "%s", error.message);
    cr_assert(strstr(error.message, words), "%s", error.message);
}

Test(download, what_cannot_be_had_is_explained)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256), *bare = url_of(NULL), *path = place("f.bin"),
                     *partial = place(".partial-f.bin");
    expect_refusal(bare, ERROR_INVALID, "give its SHA-256");
    expect_refusal("http://127.0.0.1/a", ERROR_INVALID,
                   "neither with hf:// nor with https://; storage[].s3 is for buckets");
    expect_refusal("hf://one", ERROR_INVALID, "write hf://ORGANISATION/NAME@REVISION");
    expect_refusal("https://127.0.0.1/../a#sha256=" CONTENT_SHA256, ERROR_INVALID, "name of a file");
    status = 403;
    expect_refusal(url, ERROR_FORBIDDEN, "put a token that may read it into the Secret");
    status = 404;
    expect_refusal(url, ERROR_NOT_FOUND, "there is nothing at");
    status = 503;
    expect_refusal(url, ERROR_UNAVAILABLE, "answers 503");
    status = 0;
    content = "9876543210";
    expect_refusal(url, ERROR_CORRUPT, "instead of " CONTENT_SHA256);
    cr_assert(access(path, F_OK) < 0 && access(partial, F_OK) < 0, "wrong bytes are never seen");
    request.ceiling = 9;
    write_text(partial, "01234");
    expect_refusal(url, ERROR_TOO_LARGE, "raise sizeLimit");
    cr_assert_lt(access(partial, F_OK), 0, "nor do bytes stay that nobody will use");
    request.ceiling = 0, request.secrets = NULL;
    expect_refusal(url, ERROR_FORBIDDEN, "certificate");
    end();
}

Test(download, a_token_goes_to_one_host)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256), *token = memory_format("%s/token", secrets);
    const char *const sources[] = {url, "hf://org/name"};
    write_text(token, "hf_secret\n");
    request.sources = sources, request.source_count = 2, request.patience_ms = 100;
    error = (struct error)ERROR_INIT;
    cr_assert_lt(download(&request, &result, &error), 0);
    cr_assert(error.kind == ERROR_INVALID && strstr(error.message, "several hosts"), "%s", error.message);
    cr_assert_eq(server.requests, 0, "nobody gets it");
    end();
}

Test(download, files_of_the_hub)
{
    begin(false);
    SCOPED_FREE char *hub = memory_format("http://127.0.0.1:%d/", server.port),
                     *path = memory_format("%s/org/name@" COMMIT "/a/w.bin", folder),
                     *wanted = memory_format("GET /org/name/resolve/" COMMIT "/a/w.bin");
    request.hub = hub;
    cr_assert_eq(get("hf://org/name@" COMMIT "/a"), 0, "%s", error.message);
    cr_assert(has(path, CONTENT) && scripted_count(&server, wanted) == 1 && server.requests == 2);
    cr_assert_eq(get("hf://org/name@" COMMIT "/a"), 0, "%s", error.message);
    cr_assert(server.requests == 2 && result.kept == 1, "the list of a commit is kept");

    cr_assert_eq(get("hf://org/name/small.txt"), 0, "small files have the digest of git: %s", error.message);
    cr_assert_eq(get("hf://datasets/org/name/*.bin"), 0, "%s", error.message);
    cr_assert_eq(scripted_count(&server, "GET /datasets/org/name/resolve/" COMMIT "/a/w.bin"), 1);
    status = 503;
    cr_assert_eq(get("hf://datasets/org/name/*.bin"), 0, "the kept list serves while the hub is away: %s",
                 error.message);
    status = 404;
    expect_refusal("hf://org/name@nightly", ERROR_NOT_FOUND, "correct the name or the revision");
    status = 0;
    expect_refusal("hf://org/name/b", ERROR_NOT_FOUND, "has no file \"b\" in the revision main");
    expect_refusal("hf://org/name/other.txt", ERROR_CORRUPT, "has the digest");
    size = 11;
    expect_refusal("hf://org/longer/a", ERROR_UNAVAILABLE, "ends after 10 of 11 bytes");
    size = 5;
    expect_refusal("hf://org/shorter/a/", ERROR_CORRUPT, "sends more than the 5 bytes");
    size = 10;
    expect_refusal("hf://org/name@1111111111111111111111111111111111111111", ERROR_CORRUPT, "instead of 1111");
    extra = ",{\"rfilename\":\".verified-listing\",\"size\":10,\"blobId\":\"" CONTENT_GIT "\"}";
    expect_refusal("hf://org/forger", ERROR_CORRUPT, "begins with \".verified-\"");
    extra = "";
    request.hub = "example.com";
    expect_refusal("hf://org/name", ERROR_INVALID, "must begin with https://");
    request.hub = "";
    expect_refusal("hf://org/name", ERROR_INVALID, "must begin with https://");
    request.hub = hub;
    request.ceiling = 9;
    expect_refusal("hf://org/name", ERROR_TOO_LARGE, "has 30 bytes");
    commit = "no";
    expect_refusal("hf://org/new", ERROR_CORRUPT, "no commit");
    end();
}

Test(download, one_process_downloads_and_the_others_wait)
{
    begin(true);
    SCOPED_FREE char *url = url_of(CONTENT_SHA256);
    for (int i = 0; i < 4; i++)
        if (fork() == 0)
            _exit(get(url) == 0 ? 0 : 1);
    for (int i = 0, code; i < 4; i++)
        cr_assert(wait(&code) > 0 && WIFEXITED(code) && WEXITSTATUS(code) == 0);
    cr_assert_eq(server.requests, 1);
    end();
}

Test(download, listings_are_checked)
{
    static const char *const wrong[] = {"",
                                        "[]",
                                        "{}",
                                        "{\"sha\":\"" COMMIT "\"}",
                                        "{\"sha\":\"" COMMIT "\",\"siblings\":[{\"rfilename\":\"../x\",\"size\":1,"
                                        "\"blobId\":\"" COMMIT "\"}]}",
                                        "{\"sha\":\"" COMMIT "\",\"siblings\":[{\"rfilename\":\"x\",\"size\":-1,"
                                        "\"blobId\":\"" COMMIT "\"}]}",
                                        "{\"sha\":\"" COMMIT "\",\"siblings\":[{\"rfilename\":\"x\",\"size\":1}]}"};
    struct hub_listing listing;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        error = (struct error)ERROR_INIT;
        cr_assert_lt(hub_listing_parse(wrong[i], strlen(wrong[i]), &listing, &error), 0, "%s", wrong[i]);
        cr_assert_eq(error.kind, ERROR_CORRUPT);
    }
}
