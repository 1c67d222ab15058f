/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/quantity.h"

#include <stdio.h>

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/json_of.h"

static int64_t value(const char *text)
{
    int64_t thousandths = -1;
    return quantity_parse(text, &thousandths) ? thousandths : -1;
}

Test(quantity, every_form_is_read)
{
    static const struct {
        const char *text;
        int64_t thousandths;
    } forms[] = {{"2", 2000},      {"0", 0},
                 {"500m", 500},    {"0.1", 100},
                 {"1.1", 1100},    {".5", 500},
                 {"5.", 5000},     {"1Ki", 1024000},
                 {"1k", 1000000},  {"1.5Gi", 1610612736000},
                 {"2e3", 2000000}, {"2E3", 2000000},
                 {"1e-3", 1},      {"1u", 1},
                 {"1001u", 2},     {"1E", -1},
                 {"", -1},         {"m", -1},
                 {".", -1},        {"1.2.3", -1},
                 {"-1", -1},       {"1 ", -1},
                 {"1e", -1},       {"1e 3", -1},
                 {"1Xi", -1},      {"99999999999999999999999999999999", -1}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        cr_expect_eq(value(forms[i].text), forms[i].thousandths, "%s: %ld", forms[i].text, (long)value(forms[i].text));
}

Test(quantity, a_pod_needs_the_sum_of_its_containers_or_its_largest_first_one)
{
    SCOPED_JSON *spec =
        json_of("{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1500m\",\"memory\":\"1Gi\"},"
                "\"limits\":{\"cpu\":4,\"nvidia.com/gpu\":1}}},{\"resources\":{\"requests\":{\"cpu\":\"0.5\"}}}],"
                "\"initContainers\":[{\"resources\":{\"requests\":{\"memory\":\"3Gi\"}}}]}");
    SCOPED_JSON *one = quantities_of_pod(spec);
    cr_assert_str_eq(json_string_at(one, "cpu", ""), "2");
    cr_assert_str_eq(json_string_at(one, "memory", ""), "3221225472");
    cr_assert_str_eq(json_string(json_member(one, "nvidia.com/gpu"), ""), "1");
    SCOPED_JSON *sum = json_new_object();
    quantities_add(sum, one, 3);
    cr_assert_str_eq(json_string_at(sum, "cpu", ""), "6");
}

static const char *cpu_of_pod(const char *spec)
{
    static char cpu[QUANTITY_TEXT_MAX];
    SCOPED_JSON *parsed = json_of(spec);
    SCOPED_JSON *amounts = quantities_of_pod(parsed);
    snprintf(cpu, sizeof cpu, "%s", json_string_at(amounts, "cpu", ""));
    return cpu;
}

#define CPU(amount) "\"resources\":{\"requests\":{\"cpu\":\"" amount "\"}}"
#define SIDECAR(amount) "{\"restartPolicy\":\"Always\"," CPU(amount) "}"
#define INIT(amount) "{" CPU(amount) "}"

/* As kube-scheduler reckons (KEP-753). */
Test(quantity, sidecars_run_on_beside_the_containers_and_the_init_containers_after_them)
{
    cr_assert_str_eq(cpu_of_pod("{\"containers\":[{" CPU("2") "}],\"initContainers\":[" SIDECAR("1") "]}"), "3");
    cr_assert_str_eq(
        cpu_of_pod("{\"containers\":[{" CPU("2") "}],\"initContainers\":[" SIDECAR("1") "," INIT("5") "]}"), "6",
        "with the sidecar before it");
    cr_assert_str_eq(
        cpu_of_pod("{\"containers\":[{" CPU("2") "}],\"initContainers\":[" INIT("5") "," SIDECAR("1") "]}"), "5",
        "before the sidecar");
    cr_assert_str_eq(cpu_of_pod("{\"containers\":[{" CPU("500m") "}],\"initContainers\":[" SIDECAR("1") "," INIT(
                         "2") "," SIDECAR("1") "," INIT("2") "]}"),
                     "4", "two sidecars before the last");
}

Test(quantity, what_runs_pods_takes_its_part_and_a_pod_may_request_as_a_whole)
{
    cr_assert_str_eq(cpu_of_pod("{\"containers\":[{" CPU("2") "}],\"overhead\":{\"cpu\":\"250m\"}}"), "2250m");
    cr_assert_str_eq(
        cpu_of_pod("{\"containers\":[{" CPU("2") "},{" CPU("1") "}]," CPU("4") ",\"overhead\":{\"cpu\":\"250m\"}}"),
        "4250m");
    cr_assert_str_eq(cpu_of_pod("{\"containers\":[{}],\"resources\":{\"limits\":{\"cpu\":\"3\"}}}"), "3",
                     "nobody requests any");
    cr_assert_str_eq(cpu_of_pod("{\"containers\":[{" CPU("2") "}],\"resources\":{\"limits\":{\"cpu\":\"3\"}}}"), "2",
                     "the containers do");
}

Test(quantity, sums_do_not_overflow)
{
    SCOPED_JSON *most = json_of("{\"cpu\":\"8P\"}");
    SCOPED_JSON *sum = json_new_object();
    quantities_add(sum, most, 1);
    quantities_add(sum, most, 1000);
    cr_assert_str_eq(json_string_at(sum, "cpu", ""), "8000000000000000");
}
