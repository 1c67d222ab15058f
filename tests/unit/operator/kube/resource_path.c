/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "operator/kube/resource_path.h"

static struct buffer url;

static const char *path_text(struct resource_path path)
{
    buffer_clear(&url);
    cr_assert_eq(resource_path_append(&url, &path, NULL), 0);
    return buffer_text(&url);
}

static void setup(void)
{
    buffer_init(&url, 4096);
}

TestSuite(resource_path, .init = setup);

Test(resource_path, of_resources_in_core_and_named_groups)
{
    cr_assert_str_eq(path_text((struct resource_path){.resource = KUBE_PODS}), "/api/v1/pods");
    cr_assert_str_eq(path_text((struct resource_path){.resource = KUBE_PODS, .name_space = "n"}),
                     "/api/v1/namespaces/n/pods");
    cr_assert_str_eq(path_text((struct resource_path){KUBE_PODS, "n", "p", "log"}), "/api/v1/namespaces/n/pods/p/log");
    cr_assert_str_eq(path_text((struct resource_path){KUBE_LEASES, "n", "l", NULL}),
                     "/apis/coordination.k8s.io/v1/namespaces/n/leases/l");
    cr_assert_str_eq(path_text((struct resource_path){KUBE_NODES, NULL, "node", NULL}), "/api/v1/nodes/node");
}

Test(resource_path, names_cannot_leave_their_place)
{
    cr_assert_str_eq(path_text((struct resource_path){KUBE_PODS, "a/b", "x?y#z %\xc3\xa9", NULL}),
                     "/api/v1/namespaces/a%2Fb/pods/x%3Fy%23z%20%25%C3%A9");
    static const char *const wrong[] = {"", ".", ".."};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct error error = ERROR_INIT;
        struct resource_path path = {KUBE_PODS, "n", wrong[i], NULL};
        cr_assert_eq(resource_path_append(&url, &path, &error), -1);
        cr_assert_eq(error.kind, ERROR_INVALID);
    }
}

Test(resource_path, queries_are_joined_and_encoded)
{
    buffer_append_string(&url, "/x", NULL);
    resource_path_append_query(&url, "a", NULL, NULL);
    resource_path_append_query(&url, "labelSelector", "k in (v,w)", NULL);
    resource_path_append_query(&url, "limit", "5", NULL);
    cr_assert_str_eq(buffer_text(&url), "/x?labelSelector=k%20in%20%28v%2Cw%29&limit=5");
}
