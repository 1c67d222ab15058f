/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_table.h"

#include <math.h>

#include "job_json.h"

#define CREATED                                                                                                        \
    "{'metadata':{'name':'a-job-with-a-longer-name','namespace':'ml','creationTimestamp':'2026-11-20T14:00:58Z'},"     \
    "'spec':{'coxswain':{'strategy':{'type':'OneDevice'}}}}"

static void expect(const char *jobs, struct command_line line, bool single, const char *expected)
{
    SCOPED_JSON *list = json_of(jobs);
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    struct error error = ERROR_INIT;
    cr_assert_eq(jobs_print(list, &line, single, JOB_NOW, &text, &error), 0, "%s", error.message);
    cr_expect_str_eq(buffer_text(&text), expected);
}

Test(job_table, columns_are_as_wide_as_they_must)
{
    expect("[" JOB_RUNNING "," CREATED "]", (struct command_line){.output = OUTPUT_TABLE}, false,
           "NAME                       STATE     READY   STEP      LOSS     RESTARTS   AGE\n"
           "digits                     Running   2/2     120/300   0.0310   1          60s\n"
           "a-job-with-a-longer-name                                        0          2s\n");
}

Test(job_table, wide_and_of_all_namespaces)
{
    expect(
        "[" JOB_RUNNING "]", (struct command_line){.output = OUTPUT_WIDE, .all_namespaces = true}, false,
        "NAMESPACE   NAME     STATE     READY   STEP      LOSS     RESTARTS   AGE   HELD OUT   STRATEGY              "
        "THROUGHPUT   ETA\n"
        "ml          digits   Running   2/2     120/300   0.0310   1          60s              MultiWorkerMirrored   "
        "5123/s       35s\n");
}

Test(job_table, names_and_documents)
{
    expect("[" JOB_RUNNING "," CREATED "]", (struct command_line){.output = OUTPUT_NAME}, false,
           "trainingjob.coxswain.dev/digits\ntrainingjob.coxswain.dev/a-job-with-a-longer-name\n");
    expect("[{'metadata':{'name':'d'}}]", (struct command_line){.output = OUTPUT_YAML}, true, "metadata:\n  name: d\n");
    expect("[{'metadata':{'name':'d'}}]", (struct command_line){.output = OUTPUT_YAML}, false,
           "apiVersion: v1\nkind: List\nitems:\n- metadata:\n    name: d\n");
}

Test(job_table, metrics_by_name)
{
    SCOPED_JSON *job = json_of(JOB_RUNNING);
    cr_expect_float_eq(job_metric(job, "loss"), 0.031, 1e-9);
    cr_expect(isnan(job_metric(job, "accuracy")));
}
