/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_describe.h"

#include "job_json.h"

Test(job_describe, all_there_is)
{
    SCOPED_JSON *job = json_of(JOB_RUNNING);
    SCOPED_JSON *pods = json_of(
        "[{'metadata':{'name':'digits-worker-0-2','creationTimestamp':'2026-11-20T14:00:20Z','labels':{"
        "'coxswain.dev/current':'true'}},'spec':{'nodeName':'n1'},'status':{'phase':'Running','conditions':[{'type':"
        "'Ready','status':'True'}]}},{'metadata':{'name':'digits-worker-0-1','creationTimestamp':"
        "'2026-11-20T14:00:00Z'},'spec':{'nodeName':'n2'},'status':{'phase':'Failed','containerStatuses':[{'name':'"
        "trainer','state':{"
        "'terminated':{'exitCode':137}}}]}}]");
    SCOPED_JSON *events = json_of("[{'metadata':{'creationTimestamp':'2026-11-20T14:00:10Z'},'type':'Warning','reason':"
                                  "'PodDisrupted','note':'worker 0: was deleted','regarding':{'name':'digits'}}]");
    struct why_input input = {.job = job, .pods = pods, .events = events, .now_ms = JOB_NOW};
    SCOPED_BUFFER text = BUFFER_INIT(DESCRIPTION_MAX);
    job_describe(&input, &text);
    cr_expect_str_eq(buffer_text(&text),
                     "Name          digits\n"
                     "Namespace     ml\n"
                     "Framework     Coxswain\n"
                     "Strategy      MultiWorkerMirrored\n"
                     "Crew          worker 2; CPU 1 a worker\n"
                     "\n"
                     "State         Running, 2/2 ready\n"
                     "Attempt       1, incarnation 2\n"
                     "Restarts      1 (failures 0 of 6, disruptions 1, out of memory 0)\n"
                     "Started       2026-11-20T14:00:00Z\n"
                     "Progress      step 120 of 300, 5123.4 examples/s, 35s left\n"
                     "  loss                     0.031\n"
                     "\n"
                     "Conditions\n"
                     "  Running            True   30s     CrewComplete: all required pods are ready\n"
                     "\n"
                     "Pods\n"
                     "  digits-worker-0-2                ready          40s     n1\n"
                     "  digits-worker-0-1                killed         60s     n2 (replaced)\n"
                     "\n"
                     "Events\n"
                     "  50s     Warning  PodDisrupted     digits: worker 0: was deleted\n"
                     "\n"
                     "digits waits for nothing: it runs, step 120 of 300, 35s left\n");
}

Test(job_describe, names_the_folder_of_the_checkpoints)
{
    SCOPED_JSON *job = json_of("{'metadata':{'name':'digits','namespace':'ml'},'spec':{'coxswain':{'checkpoint':{"
                               "'storage':'runs'}},'storage':[{'name':'runs','s3':{'endpoint':'http://minio:9000',"
                               "'bucket':'b-1'}}]}}");
    struct why_input input = {.job = job, .now_ms = JOB_NOW};
    SCOPED_BUFFER text;
    buffer_init(&text, DESCRIPTION_MAX);
    job_describe(&input, &text);
    cr_expect_not_null(strstr(buffer_text(&text), "Checkpoints   runs:ml/digits\n"), "%s", buffer_text(&text));
}

Test(job_describe, shares_are_told_as_per_cent)
{
    SCOPED_JSON *job =
        json_of("{'status':{'progress':{'step':5,'goodput':'0.959315','metrics':[{'name':'loss','value':'0.25'},"
                "{'name':'validationAccuracy','value':'0.95'},{'name':'accuracy','value':'nan'}]}}}");
    struct why_input input = {.job = job, .now_ms = JOB_NOW};
    SCOPED_BUFFER text = BUFFER_INIT(DESCRIPTION_MAX);
    job_describe(&input, &text);
    cr_expect_not_null(strstr(buffer_text(&text), "  loss                     0.25\n"
                                                  "  validationAccuracy       95.0 %\n"
                                                  "  accuracy                 nan\n"
                                                  "  goodput                  95.9 %\n"),
                       "%s", buffer_text(&text));
}

Test(job_describe, the_score_of_the_exported_weights)
{
    SCOPED_JSON *job = json_of("{'spec':{'coxswain':{'checkpoint':{'keepBest':true},'export':{'weights':'Best'}}},"
                               "'status':{'progress':{'step':9,'metrics':[{'name':'validationLoss','value':'0.9'},"
                               "{'name':'bestValidationLoss','value':'0.25','step':4}]}}}");
    struct why_input input = {.job = job, .now_ms = JOB_NOW};
    SCOPED_BUFFER text = BUFFER_INIT(DESCRIPTION_MAX);
    job_describe(&input, &text);
    cr_expect_not_null(strstr(buffer_text(&text), "  exported weights         loss 0.2500 (best, step 4)\n"), "%s",
                       buffer_text(&text));
}

Test(job_describe, metrics_alone)
{
    SCOPED_JSON *job = json_of("{'status':{'progress':{'metrics':[{'name':'bleu','value':'27.4'}]}}}");
    struct why_input input = {.job = job, .now_ms = JOB_NOW};
    SCOPED_BUFFER text = BUFFER_INIT(DESCRIPTION_MAX);
    job_describe(&input, &text);
    cr_expect_not_null(strstr(buffer_text(&text), "\nProgress\n  bleu                     27.4\n"), "%s",
                       buffer_text(&text));
}
