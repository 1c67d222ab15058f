/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_hosts.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/memory.h"
#include "tests/unit/json_of.h"

static struct json *service_make(bool publish_not_ready)
{
    SCOPED_FREE char *text = memory_format(
        "{\"metadata\":{\"name\":\"digits\",\"namespace\":\"lab\"},\"spec\":{\"clusterIP\":\"None\","
        "\"publishNotReadyAddresses\":%s,\"selector\":{\"job\":\"u\",\"coxswain.dev/current\":\"true\"}}}",
        publish_not_ready ? "true" : "false");
    return json_of(text);
}

static struct json *pod_make(const char *name_space, const char *host, const char *address, const char *current,
                             const char *phase, const char *ready)
{
    SCOPED_FREE char *text = memory_format(
        "{\"metadata\":{\"name\":\"%s-1\",\"namespace\":\"%s\",\"labels\":{\"job\":\"u\",\"coxswain.dev/"
        "current\":\"%s\"}},"
        "\"spec\":{\"hostname\":\"%s\",\"subdomain\":\"digits\"},\"status\":{\"phase\":\"%s\",\"podIP\":\"%s\","
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
        host, name_space, current, host, phase, address, ready);
    return json_of(text);
}

Test(node_hosts, follows_the_selector_as_dns_would)
{
    SCOPED_JSON *service = service_make(true);
    SCOPED_JSON *good = pod_make("lab", "w-0", "127.70.0.1", "true", "Running", "False");
    SCOPED_JSON *replaced = pod_make("lab", "w-0", "127.70.0.2", "false", "Running", "True");
    SCOPED_JSON *ended = pod_make("lab", "w-0", "127.70.0.3", "true", "Failed", "False");
    SCOPED_JSON *elsewhere = pod_make("other", "w-0", "127.70.0.4", "true", "Running", "True");
    cr_assert(service_publishes(service, good));
    cr_assert(!service_publishes(service, replaced));
    cr_assert(!service_publishes(service, ended));
    cr_assert(!service_publishes(service, elsewhere));
}

Test(node_hosts, waits_for_readiness_unless_told_otherwise)
{
    SCOPED_JSON *service = service_make(false);
    SCOPED_JSON *starting = pod_make("lab", "w-0", "127.70.0.1", "true", "Running", "False");
    SCOPED_JSON *ready = pod_make("lab", "w-0", "127.70.0.1", "true", "Running", "True");
    cr_assert(!service_publishes(service, starting));
    cr_assert(service_publishes(service, ready));
}

Test(node_hosts, the_file)
{
    SCOPED_JSON *service = service_make(true);
    SCOPED_JSON *self = pod_make("lab", "w-0", "127.70.0.1", "true", "Running", "True");
    SCOPED_JSON *peer = pod_make("lab", "w-1", "127.70.0.2", "true", "Running", "True");
    const struct json *services[] = {service}, *pods[] = {self, peer};
    SCOPED_BUFFER published = BUFFER_INIT(HOSTS_FILE_MAX);
    SCOPED_BUFFER text = BUFFER_INIT(HOSTS_FILE_MAX);
    hosts_published(&published, "lab", services, 1, pods, 2);
    hosts_write(&text, self, &published);
    cr_assert_str_eq(buffer_text(&text),
                     "# kept current by coxswain-standalone\n127.0.0.1\tlocalhost\n::1\tlocalhost\n"
                     "127.70.0.1\tw-0.digits.lab.svc.cluster.local w-0.digits.lab.svc w-0.digits.lab w-0.digits\n"
                     "127.70.0.2\tw-1.digits.lab.svc.cluster.local w-1.digits.lab.svc w-1.digits.lab w-1.digits\n"
                     "127.70.0.1\tw-0\n");
}

Test(node_hosts, short_names_only_within_the_namespace)
{
    SCOPED_JSON *service = service_make(true);
    SCOPED_JSON *pod = pod_make("lab", "w-0", "127.70.0.1", "true", "Running", "True");
    const struct json *services[] = {service}, *pods[] = {pod};
    SCOPED_BUFFER published = BUFFER_INIT(HOSTS_FILE_MAX);
    hosts_published(&published, "other", services, 1, pods, 1);
    cr_assert_str_eq(buffer_text(&published),
                     "127.70.0.1\tw-0.digits.lab.svc.cluster.local w-0.digits.lab.svc w-0.digits.lab\n");
}
