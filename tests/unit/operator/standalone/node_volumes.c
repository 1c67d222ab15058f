/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_volumes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/directory.h"
#include "common/memory.h"
#include "common/scope.h"
#include "tests/unit/json_of.h"

static char work[] = "/tmp/cox-volumes-XXXXXX";
static char *state, *pod_directory, *given;

static void setup(void)
{
    cr_assert(mkdtemp(work));
    state = memory_format("%s/state", work);
    pod_directory = memory_format("%s/pod", work);
    given = memory_format("%s/given", work);
    cr_assert_eq(directory_make(pod_directory, NULL), 0);
    cr_assert_eq(directory_make(given, NULL), 0);
}

static void teardown(void)
{
    directory_remove(work);
    free(state);
    free(pod_directory);
    free(given);
}

TestSuite(node_volumes, .init = setup, .fini = teardown);

static const char *settings = "{\"data\":{\"colour\":\"green\",\"size\":\"small\"}}"; /* NULL: gone */

static struct json *look_up(void *context, const char *plural, const char *name)
{
    (void)context;
    if (settings && strcmp(plural, "configmaps") == 0 && strcmp(name, "settings") == 0)
        return json_of(settings);
    return NULL;
}

/* The mounts of a pod with one volume `volume` at /in. */
static int resolve(const char *volume, const char *mount, struct volume_mounts *ret_mounts, struct error *error)
{
    SCOPED_FREE char *text =
        memory_format("{\"metadata\":{\"namespace\":\"lab\",\"name\":\"a\",\"labels\":{\"x\":\"y\"}},"
                      "\"spec\":{\"volumes\":[{\"name\":\"v\",%s}]}}",
                      volume);
    SCOPED_FREE char *mounts = memory_format("{\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/in\"%s}]}", mount);
    SCOPED_JSON *pod = json_of(text);
    SCOPED_JSON *container = json_of(mounts);
    struct node_volume claims[] = {{"named", given}};
    struct node_options options = {.state_directory = state, .volumes = claims, .volume_count = 1};
    struct environment_source configuration = {.pod = pod, .lookup = look_up};
    struct volume_source source = {
        .options = &options, .configuration = &configuration, .pod_directory = pod_directory};
    return volume_mounts_resolve(&source, container, ret_mounts, error);
}

static struct mount_point the_mount(const char *volume, const char *mount, struct volume_mounts *mounts)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(resolve(volume, mount, mounts, &error), 0, "%s", error.message);
    cr_assert_eq(mounts->count, 1);
    cr_assert_str_eq(mounts->points[0].path, "/in");
    return mounts->points[0];
}

static void check_file(const char *directory, const char *name, const char *contents)
{
    char text[64] = "";
    SCOPED_FREE char *path = memory_format("%s/%s", directory, name);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    (void)!fgets(text, sizeof text, file);
    fclose(file);
    cr_assert_str_eq(text, contents);
}

Test(node_volumes, a_claim_is_the_directory_given_for_it)
{
    SCOPED(volume_mounts_release) struct volume_mounts mounts = {.count = 0};
    struct mount_point point =
        the_mount("\"persistentVolumeClaim\":{\"claimName\":\"named\"}", ",\"readOnly\":true", &mounts);
    cr_assert_str_eq(point.source, given);
    cr_assert(point.read_only);
}

Test(node_volumes, another_claim_is_made_below_the_state)
{
    SCOPED(volume_mounts_release) struct volume_mounts mounts = {.count = 0};
    SCOPED_FREE char *expected = memory_format("%s/volumes/lab/other", state);
    struct stat about;
    struct mount_point point = the_mount("\"persistentVolumeClaim\":{\"claimName\":\"other\"}", "", &mounts);
    cr_assert_str_eq(point.source, expected);
    cr_assert_not(point.read_only);
    cr_assert(stat(expected, &about) == 0 && S_ISDIR(about.st_mode));
}

Test(node_volumes, a_claim_may_be_read_only_by_itself)
{
    SCOPED(volume_mounts_release) struct volume_mounts mounts = {.count = 0};
    cr_assert(
        the_mount("\"persistentVolumeClaim\":{\"claimName\":\"other\",\"readOnly\":true}", "", &mounts).read_only);
}

Test(node_volumes, a_config_map_as_files)
{
    SCOPED(volume_mounts_release) struct volume_mounts mounts = {.count = 0};
    struct mount_point point = the_mount("\"configMap\":{\"name\":\"settings\"}", "", &mounts);
    check_file(point.source, "colour", "green");
    check_file(point.source, "size", "small");
}

static mode_t mode_of(const char *directory, const char *name)
{
    struct stat about;
    SCOPED_FREE char *path = memory_format("%s/%s", directory, name);
    cr_assert_eq(stat(path, &about), 0, "%s", path);
    return about.st_mode & 07777;
}

/* Secrets' files are written by the same code. */
Test(node_volumes, files_are_their_owners_alone)
{
    static const struct {
        const char *members;
        mode_t size, colour;
    } cases[] = {
        {"", 0600, 0600},
        {",\"defaultMode\":493", 0700, 0700}, /* 0755: a script */
        {",\"defaultMode\":256", 0400, 0400}, /* 0400 */
        {",\"defaultMode\":438,\"items\":[{\"key\":\"size\",\"path\":\"size\",\"mode\":511},"
         "{\"key\":\"colour\",\"path\":\"colour\"}]",
         0700, 0600},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        SCOPED(volume_mounts_release) struct volume_mounts mounts = {.count = 0};
        SCOPED_FREE char *volume = memory_format("\"configMap\":{\"name\":\"settings\"%s}", cases[i].members);
        struct mount_point point = the_mount(volume, "", &mounts);
        cr_expect_eq(mode_of(point.source, "size"), cases[i].size, "case %zu", i);
        cr_expect_eq(mode_of(point.source, "colour"), cases[i].colour, "case %zu", i);
        cr_expect_eq(mode_of(point.source, "."), 0700, "case %zu", i);
        directory_remove(point.source);
    }
}

Test(node_volumes, chosen_keys_under_other_names)
{
    SCOPED(volume_mounts_release) struct volume_mounts mounts = {.count = 0};
    struct mount_point point = the_mount(
        "\"configMap\":{\"name\":\"settings\",\"items\":[{\"key\":\"size\",\"path\":\"deep/er\"}]}", "", &mounts);
    check_file(point.source, "deep/er", "small");
}

static void refresh(const char *volume)
{
    SCOPED_FREE char *text = memory_format("{\"spec\":{\"volumes\":[{\"name\":\"v\",%s}]}}", volume);
    SCOPED_JSON *pod = json_of(text);
    struct node_options options = {.state_directory = state};
    struct environment_source configuration = {.pod = pod, .lookup = look_up};
    volumes_refresh(&(struct volume_source){&options, &configuration, pod_directory});
}

Test(node_volumes, files_follow_their_object)
{
    static const char volume[] = "\"projected\":{\"sources\":[{\"configMap\":{\"name\":\"settings\"}}]}";
    SCOPED(volume_mounts_release) struct volume_mounts mounts = {.count = 0};
    struct stat before, after;
    struct mount_point point = the_mount(volume, "", &mounts);
    SCOPED_FREE char *size = memory_format("%s/size", point.source);
    cr_assert_eq(stat(size, &before), 0);
    settings = "{\"data\":{\"colour\":\"red\",\"size\":\"small\"}}";
    refresh(volume);
    check_file(point.source, "colour", "red");
    cr_assert(stat(size, &after) == 0 && before.st_ino == after.st_ino, "what did not change is left alone");
    settings = NULL;
    refresh(volume);
    check_file(point.source, "colour", "red");
}

Test(node_volumes, what_is_not_mounted_is_not_made)
{
    refresh("\"configMap\":{\"name\":\"settings\"}");
    SCOPED_FREE char *path = memory_format("%s/volumes/v", pod_directory);
    cr_assert_neq(access(path, F_OK), 0);
}

Test(node_volumes, what_is_missing_or_unknown_is_said)
{
    static const struct {
        const char *volume;
        enum error_kind kind;
    } cases[] = {
        {"\"configMap\":{\"name\":\"nowhere\"}", ERROR_NOT_FOUND},
        {"\"secret\":{\"secretName\":\"nowhere\"}", ERROR_NOT_FOUND},
        {"\"hostPath\":{\"path\":\"/no/such/place\",\"type\":\"Directory\"}", ERROR_NOT_FOUND},
        {"\"nfs\":{\"server\":\"a\",\"path\":\"/b\"}", ERROR_UNSUPPORTED},
        {"\"configMap\":{\"name\":\"settings\",\"items\":[{\"key\":\"size\",\"path\":\"../out\"}]}", ERROR_INVALID},
        {"\"configMap\":{\"name\":\"settings\",\"items\":[{\"key\":\"size\",\"path\":\"/out\"}]}", ERROR_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct volume_mounts mounts = {.count = 0};
        struct error error = ERROR_INIT;
        cr_assert_lt(resolve(cases[i].volume, "", &mounts, &error), 0, "%s", cases[i].volume);
        cr_assert_eq(error.kind, cases[i].kind, "%s: %s", cases[i].volume, error.message);
    }
}

Test(node_volumes, an_optional_config_map_may_be_missing)
{
    SCOPED(volume_mounts_release) struct volume_mounts mounts = {.count = 0};
    the_mount("\"configMap\":{\"name\":\"nowhere\",\"optional\":true}", "", &mounts);
}
