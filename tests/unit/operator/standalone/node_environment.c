/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_environment.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/json_of.h"

static const char pod_text[] =
    "{\"metadata\":{\"name\":\"digits-0\",\"namespace\":\"lab\",\"uid\":\"u-1\",\"labels\":{\"app\":\"x\","
    "\"coxswain.dev/role\":\"worker\"}},\"spec\":{},\"status\":{\"podIP\":\"127.70.0.1\",\"hostIP\":\"127.0.0.1\"}}";

static struct json *look_up(void *context, const char *plural, const char *name)
{
    (void)context;
    if (strcmp(plural, "configmaps") == 0 && strcmp(name, "settings") == 0)
        return json_of("{\"kind\":\"ConfigMap\",\"data\":{\"mode\":\"fast\",\"level\":\"3\"}}");
    if (strcmp(plural, "secrets") == 0 && strcmp(name, "keys") == 0)
        return json_of("{\"kind\":\"Secret\",\"data\":{\"token\":\"c2VjcmV0IQ==\"}}");
    return NULL;
}

static int resolve(struct environment *environment, const char *container_text, struct error *error)
{
    SCOPED_JSON *pod = json_of(pod_text);
    SCOPED_JSON *container = json_of(container_text);
    struct environment_source source = {.pod = pod, .lookup = look_up};
    return environment_resolve(environment, container, &source, error);
}

Test(node_environment, references_see_what_stands_before_them)
{
    struct environment environment = {.count = 0};
    cr_assert_eq(resolve(&environment,
                         "{\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"B\",\"value\":\"$(A)$(C)\"},"
                         "{\"name\":\"C\",\"value\":\"$$(A) $(B) $(\"}]}",
                         NULL),
                 0);
    cr_assert_str_eq(environment_get(&environment, "B"), "1$(C)");
    cr_assert_str_eq(environment_get(&environment, "C"), "$(A) 1$(C) $(");
    cr_assert_null(environment_get(&environment, "D"));
    environment_release(&environment);
}

Test(node_environment, the_last_value_of_a_name_wins)
{
    struct environment environment = {.count = 0};
    environment_set(&environment, "AB", "other");
    environment_set(&environment, "A", "1");
    environment_set(&environment, "A", "2");
    cr_assert_eq(environment.count, 2);
    cr_assert_str_eq(environment_get(&environment, "A"), "2");
    cr_assert_null(environment.entries[2]);
    environment_release(&environment);
}

Test(node_environment, downward_fields)
{
    struct environment environment = {.count = 0};
    struct error error = ERROR_INIT;
    cr_assert_eq(
        resolve(
            &environment,
            "{\"env\":[{\"name\":\"IP\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"status.podIP\"}}},"
            "{\"name\":\"ROLE\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.labels['coxswain.dev/role']\"}}},"
            "{\"name\":\"UID\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.uid\"}}},"
            "{\"name\":\"NONE\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.annotations['a']\"}}}]}",
            &error),
        0, "%s", error.message);
    cr_assert_str_eq(environment_get(&environment, "IP"), "127.70.0.1");
    cr_assert_str_eq(environment_get(&environment, "ROLE"), "worker");
    cr_assert_str_eq(environment_get(&environment, "UID"), "u-1");
    cr_assert_str_eq(environment_get(&environment, "NONE"), "");
    environment_release(&environment);
}

Test(node_environment, labels_as_lines)
{
    SCOPED_JSON *pod = json_of(pod_text);
    SCOPED_FREE char *lines = pod_field(pod, "metadata.labels");
    cr_assert_str_eq(lines, "app=\"x\"\ncoxswain.dev/role=\"worker\"\n");
    cr_assert_null(pod_field(pod, "spec.secret"));
}

Test(node_environment, config_maps_and_secrets)
{
    struct environment environment = {.count = 0};
    struct error error = ERROR_INIT;
    cr_assert_eq(
        resolve(
            &environment,
            "{\"envFrom\":[{\"prefix\":\"S_\",\"configMapRef\":{\"name\":\"settings\"}},"
            "{\"secretRef\":{\"name\":\"absent\",\"optional\":true}}],"
            "\"env\":[{\"name\":\"T\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"keys\",\"key\":\"token\"}}},"
            "{\"name\":\"M\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"settings\",\"key\":\"mode\"}}},"
            "{\"name\":\"O\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"no\",\"key\":\"k\",\"optional\":true}}}]}",
            &error),
        0, "%s", error.message);
    cr_assert_str_eq(environment_get(&environment, "S_level"), "3");
    cr_assert_str_eq(environment_get(&environment, "T"), "secret!");
    cr_assert_str_eq(environment_get(&environment, "M"), "fast");
    cr_assert_null(environment_get(&environment, "O"));
    environment_release(&environment);
}

Test(node_environment, what_is_missing_is_named)
{
    struct environment environment = {.count = 0};
    struct error error = ERROR_INIT;
    const char *container =
        "{\"env\":[{\"name\":\"M\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"settings\",\"key\":\"no\"}}}]}";
    cr_assert_eq(resolve(&environment, container, &error), -1);
    cr_assert_eq(error.kind, ERROR_NOT_FOUND);
    cr_assert_str_eq(error.message, "env M: no key \"no\" in configmaps \"settings\"");
    environment_release(&environment);
}
