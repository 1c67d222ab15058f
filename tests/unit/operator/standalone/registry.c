/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/registry.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "operator/standalone/bootstrap.h"
#include "operator/standalone/registry_write.h"
#include "tests/unit/json_of.h"

TestSuite(registry);

static struct registry *new_registry(void)
{
    char directory[] = "/tmp/coxswain-registry-XXXXXX";
    struct registry *registry;
    struct error error = ERROR_INIT;
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(registry_open(directory, NULL, &registry, &error), 0, "%s", error.message);
    cr_assert_eq(bootstrap_cluster(registry, &error), 0, "%s", error.message);
    return registry;
}

static struct json *create(struct registry *registry, const char *plural, const char *text)
{
    SCOPED_JSON *object = json_of(text);
    struct json *stored;
    struct error error = ERROR_INIT;
    cr_assert_eq(registry_create(registry, plural, object, &stored, &error), 0, "%s", error.message);
    return stored;
}

static bool exists(struct registry *registry, const char *plural, const char *name)
{
    struct json *object = NULL;
    bool found = registry_get(registry, plural, "default", name, &object, NULL) == 0;
    json_free(found ? object : NULL);
    return found;
}

#define POD(name, more)                                                                                                \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"default\"" more                                              \
    "},\"spec\":{\"containers\":[{\"name\":\"c\","                                                                     \
    "\"image\":\"i\"}]}}"

/* Deliveries may write: commit until nothing is left to say. */
static void settle(struct registry *registry)
{
    for (int i = 0; i < 8; i++)
        cr_assert_eq(registry_commit(registry, NULL), 0);
}

Test(registry, a_new_pod_is_pending_and_bound)
{
    struct registry *registry = new_registry();
    SCOPED_JSON *pod = create(registry, "pods", POD("p", ""));
    cr_expect_str_eq(json_string_at(pod, "status.phase", ""), "Pending");
    cr_expect_str_eq(json_string_at(pod, "spec.nodeName", ""), "localhost");
    cr_expect_eq(json_integer_at(pod, "metadata.generation", 0), 1);
    registry_close(registry);
}

Test(registry, status_conflicts_on_an_old_version)
{
    struct registry *registry = new_registry();
    SCOPED_JSON *pod = create(registry, "pods", POD("p", ""));
    struct error error = ERROR_INIT;
    json_set_string(json_member(pod, "status"), "phase", "Running");
    cr_expect_eq(registry_update_status(registry, "pods", pod, NULL, &error), 0);
    json_set_string(json_member(pod, "status"), "phase", "Failed");
    cr_expect_eq(registry_update_status(registry, "pods", pod, NULL, &error), -1);
    cr_expect_eq(error.kind, ERROR_CONFLICT);
    registry_close(registry);
}

Test(registry, a_running_pod_is_deleted_gracefully)
{
    struct registry *registry = new_registry();
    SCOPED_JSON *pod = create(registry, "pods", POD("p", ""));
    const char *uid = json_string_at(pod, "metadata.uid", "");
    struct error error = ERROR_INIT;
    cr_expect_eq(registry_delete(registry, "pods", "default", "p", "another", -1, &error), -1);
    cr_expect_eq(error.kind, ERROR_CONFLICT);
    cr_assert_eq(registry_delete(registry, "pods", "default", "p", uid, -1, NULL), 0);
    SCOPED_JSON *leaving = NULL;
    cr_assert_eq(registry_get(registry, "pods", "default", "p", &leaving, NULL), 0);
    cr_expect_eq(json_integer_at(leaving, "metadata.deletionGracePeriodSeconds", 0), 30);
    cr_assert_eq(registry_delete(registry, "pods", "default", "p", uid, 0, NULL), 0);
    cr_expect_not(exists(registry, "pods", "p"));
    registry_close(registry);
}

Test(registry, dependents_go_with_their_owner)
{
    struct registry *registry = new_registry();
    SCOPED_JSON *owner = create(registry, "configmaps", "{\"metadata\":{\"name\":\"o\",\"namespace\":\"default\"}}");
    SCOPED_FREE char *text = memory_format(
        "{\"metadata\":{\"name\":\"d\",\"namespace\":\"default\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
        "\"ConfigMap\",\"name\":\"o\",\"uid\":\"%s\"}]}}",
        json_string_at(owner, "metadata.uid", ""));
    json_free(create(registry, "configmaps", text));
    settle(registry);
    cr_expect(exists(registry, "configmaps", "d"));
    cr_assert_eq(registry_delete(registry, "configmaps", "default", "o", NULL, -1, NULL), 0);
    settle(registry);
    cr_expect_not(exists(registry, "configmaps", "d"));
    registry_close(registry);
}

Test(registry, finalizers_hold_an_object)
{
    struct registry *registry = new_registry();
    json_free(create(registry, "configmaps",
                     "{\"metadata\":{\"name\":\"f\",\"namespace\":\"default\",\"finalizers\":[\"x/y\"]}}"));
    cr_assert_eq(registry_delete(registry, "configmaps", "default", "f", NULL, -1, NULL), 0);
    cr_expect(exists(registry, "configmaps", "f"));
    struct write write = {.resource = resource_find_plural(registry_resources(registry), "configmaps"),
                          .namespace = "default",
                          .name = "f",
                          .warnings = json_new_array()};
    SCOPED_JSON *patch = json_of("{\"metadata\":{\"finalizers\":null}}");
    cr_expect_null(registry_write_patch(registry, &write, PATCH_MERGE, patch));
    cr_expect_not(exists(registry, "configmaps", "f"));
    json_free(write.warnings);
    json_free(write.result);
    registry_close(registry);
}

static void hear(void *context, enum registry_change change, const char *plural, const struct json *object)
{
    char *heard = context;
    (void)plural;
    size_t used = strlen(heard);
    snprintf(heard + used, 128 - used, "%d%s ", change, json_string_at(object, "metadata.name", ""));
}

Test(registry, observers_hear_of_commits_only)
{
    struct registry *registry = new_registry();
    char heard[128] = "";
    registry_observe(registry, "pods", hear, heard);
    json_free(create(registry, "pods", POD("p", "")));
    cr_expect_str_eq(heard, "");
    settle(registry);
    cr_expect_str_eq(heard, "0p ");
    registry_close(registry);
}

Test(registry, a_bad_pod_is_refused_with_causes)
{
    struct registry *registry = new_registry();
    SCOPED_JSON *pod =
        json_of("{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\"},\"spec\":{\"containers\":[]}}");
    struct error error = ERROR_INIT;
    cr_expect_eq(registry_create(registry, "pods", pod, NULL, &error), -1);
    cr_expect_eq(error.http_status, 422);
    cr_expect_str_eq(error.message, "Pod \"p\" is invalid: spec.containers: Required value");
    registry_close(registry);
}

Test(registry, a_pod_with_two_handlers_or_sources_is_refused)
{
    static const char *const specs[][2] = {
        {"\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"readinessProbe\":{\"exec\":{},\"httpGet\":{}}}]",
         "spec.containers[0].readinessProbe.httpGet: Forbidden: may not specify more than 1 handler type"},
        {"\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"startupProbe\":{\"periodSeconds\":1}}]",
         "spec.containers[0].startupProbe: Required value: must specify a handler type"},
        {"\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"v\",\"emptyDir\":{},"
         "\"hostPath\":{}}]",
         "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"},
    };
    struct registry *registry = new_registry();
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        SCOPED_FREE char *text =
            memory_format("{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\"},\"spec\":{%s}}", specs[i][0]);
        SCOPED_JSON *pod = json_of(text);
        struct error error = ERROR_INIT;
        cr_expect_eq(registry_create(registry, "pods", pod, NULL, &error), -1, "row %zu", i);
        cr_expect(strstr(error.message, specs[i][1]), "row %zu: %s", i, error.message);
    }
    registry_close(registry);
}

Test(registry, equal_events_are_counted)
{
    struct registry *registry = new_registry();
    SCOPED_JSON *pod = create(registry, "pods", POD("p", ""));
    SCOPED_JSON *events = NULL;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(registry_event(registry, pod, "Normal", "Started", "test", "went well", NULL), 0);
    cr_assert_eq(registry_list(registry, "events", "default", &events, NULL), 0);
    cr_assert_eq(json_count(events), 1);
    cr_expect_eq(json_integer_at(json_first(events), "count", 0), 3);
    registry_close(registry);
}
