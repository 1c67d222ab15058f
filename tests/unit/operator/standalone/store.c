/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/store.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "common/memory.h"

TestSuite(store);

static char *new_path(void)
{
    char directory[] = "/tmp/coxswain-store-XXXXXX";
    cr_assert_not_null(mkdtemp(directory));
    return memory_format("%s/objects.db", directory);
}

static struct store *open_store(const char *path)
{
    struct store *store;
    struct error error = ERROR_INIT;
    cr_assert_eq(store_open(path, &store, &error), 0, "%s", error.message);
    return store;
}

static void put(struct store *store, const char *name, const char *text)
{
    struct store_key key = {"things", "default", name};
    struct error error = ERROR_INIT;
    SCOPED_JSON *object = json_new_object();
    json_set_string(json_set_object(object, "metadata"), "name", name);
    json_set_string(object, "text", text);
    cr_assert_eq(store_put(store, &key, object, &error), 0, "%s", error.message);
}

Test(store, keeps_what_was_committed_and_drops_the_rest)
{
    SCOPED_FREE char *path = new_path();
    struct store *store = open_store(path);
    put(store, "a", "kept");
    cr_assert_eq(store_commit(store, NULL), 0);
    put(store, "b", "lost");
    store_close(store);
    store = open_store(path);
    struct json *object;
    cr_expect_eq(store_revision(store), 1);
    cr_assert_eq(store_get(store, &(struct store_key){"things", "default", "a"}, &object, NULL), 0);
    cr_expect_str_eq(json_string_at(object, "metadata.resourceVersion", ""), "1");
    json_free(object);
    struct error error = ERROR_INIT;
    cr_expect_eq(store_get(store, &(struct store_key){"things", "default", "b"}, &object, &error), -1);
    cr_expect_eq(error.kind, ERROR_NOT_FOUND);
    store_close(store);
}

struct seen {
    char text[256];
};

static bool see_change(void *context, enum store_change change, struct json *object, struct json *previous)
{
    struct seen *seen = context;
    size_t used = strlen(seen->text);
    snprintf(seen->text + used, sizeof seen->text - used, "%d%s<%s ", change, json_string_at(object, "text", ""),
             json_string_at(previous, "text", ""));
    json_free(object);
    json_free(previous);
    return true;
}

Test(store, replays_changes_until_they_are_compacted)
{
    SCOPED_FREE char *path = new_path();
    struct store *store = open_store(path);
    put(store, "a", "one");
    put(store, "a", "two");
    put(store, "b", "three");
    cr_assert_eq(store_commit(store, NULL), 0);
    struct seen seen = {""};
    cr_assert_eq(store_changes(store, "things", 0, see_change, &seen, NULL), 0);
    cr_expect_str_eq(seen.text, "0one< 1two<one 0three< ");
    cr_assert_eq(store_compact(store, 1, NULL), 0);
    cr_assert_eq(store_commit(store, NULL), 0);
    cr_expect_eq(store_compacted_revision(store), 2);
    seen.text[0] = '\0';
    cr_assert_eq(store_changes(store, "things", 2, see_change, &seen, NULL), 0);
    cr_expect_str_eq(seen.text, "0three< ");
    store_close(store);
}

/* A child writes and tells each commit through a pipe until it is killed in the middle of its work. */
static void write_until_killed(const char *path, int acknowledgements)
{
    struct store *store = open_store(path);
    for (int64_t i = 0;; i++) {
        char name[32];
        snprintf(name, sizeof name, "object-%" PRId64, i);
        put(store, name, "x");
        if (i % 3 == 2 && store_commit(store, NULL) == 0) {
            int64_t revision = store_revision(store);
            if (write(acknowledgements, &revision, sizeof revision) != (ssize_t)sizeof revision)
                _exit(1);
        }
    }
}

static int64_t kill_after(const char *path, unsigned acknowledged)
{
    int channel[2];
    int64_t last = 0;
    cr_assert_eq(pipe(channel), 0);
    pid_t child = fork();
    if (child == 0)
        write_until_killed(path, channel[1]);
    close(channel[1]);
    for (unsigned i = 0; i < acknowledged; i++)
        cr_assert_eq(read(channel[0], &last, sizeof last), (ssize_t)sizeof last);
    kill(child, SIGKILL);
    while (read(channel[0], &last, sizeof last) == (ssize_t)sizeof last)
        continue;
    close(channel[0]);
    waitpid(child, NULL, 0);
    return last;
}

Test(store, sigkill_loses_no_acknowledged_write)
{
    SCOPED_FREE char *path = new_path();
    for (unsigned round = 1; round <= 8; round++) {
        int64_t acknowledged = kill_after(path, round * 5);
        struct store *store = open_store(path);
        int64_t count;
        cr_expect_geq(store_revision(store), acknowledged);
        cr_assert_eq(store_count(store, "things", NULL, NULL, NULL, &count, NULL), 0);
        cr_expect_geq(count, (int64_t)round * 15);
        store_close(store);
    }
}
