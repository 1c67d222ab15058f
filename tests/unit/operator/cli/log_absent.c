/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_absent.h"

#include "job_json.h"

static struct command_line line_of(const char *role, int64_t index)
{
    return (struct command_line){.role = role, .index = index, .tail = -1};
}

static void expect(struct command_line line, const char *job, const char *pods, const char *expected)
{
    SCOPED_JSON *job_object = json_of(job);
    SCOPED_JSON *pod_list = json_of(pods);
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    log_absent_print(&line, job_object, pod_list, &text);
    cr_expect_str_eq(buffer_text(&text), expected);
}

#define JOB(workers, status)                                                                                           \
    "{'metadata':{'name':'digits'},'spec':{'workers':{'replicas':" workers                                             \
    "},'parameterServers':{'replicas':2}},'status':{" status "}}"
#define POD(role, index, more)                                                                                         \
    "{'metadata':{'name':'digits-" role "-" index                                                                      \
    "-1','labels':{'coxswain.dev/current':'true','coxswain.dev/role':'" role "','coxswain.dev/index':'" index          \
    "'}}," more "}"
#define STARTED                                                                                                        \
    "'spec':{'containers':[{'name':'trainer'}]},'status':{'containerStatuses':[{'name':'trainer','state':{'running':{" \
    "}}}]}"

Test(log_absent, each_place_without_a_log_is_told)
{
    expect(line_of(NULL, -1), JOB("3", ""),
           "[" POD("worker", "0", STARTED) "," POD("ps", "0", STARTED) "," POD("ps", "1", "'spec':{}") "," //
           POD("worker", "2",
               "'spec':{'nodeName':'a','containers':[{'name':'trainer'}]},'status':{'containerStatuses':[{'name':"
               "'trainer','state':{'waiting':{'reason':'ImagePullBackOff'}}}]}") "]",
           "worker-1: it has no pod yet\n"
           "worker-2: pod digits-worker-2-1 has not started: ImagePullBackOff\n"
           "ps-1: pod digits-ps-1-1 has not started: it has no node yet\n");
}

Test(log_absent, only_places_that_are_asked_for)
{
    expect(line_of("ps", -1), JOB("1", ""), "[]", "ps-0: it has no pod yet\nps-1: it has no pod yet\n");
    expect(line_of("ps", 1), JOB("1", "'conditions':[{'type':'Succeeded','status':'True'}]"), "[]",
           "ps-1: its pod is gone\n");
    expect(line_of("ps", 1), JOB("1", "'conditions':[{'type':'Suspended','status':'True'}]"), "[]",
           "ps-1: it has no pod, because the job is suspended\n");
    expect(line_of("worker", 0), JOB("1", ""), "[" POD("worker", "0", STARTED) "]", "");
}

Test(log_absent, many_are_counted)
{
    expect(line_of("worker", -1), JOB("12", ""), "[]",
           "worker-0: it has no pod yet\nworker-1: it has no pod yet\nworker-2: it has no pod yet\n"
           "worker-3: it has no pod yet\nworker-4: it has no pod yet\nworker-5: it has no pod yet\n"
           "worker-6: it has no pod yet\nworker-7: it has no pod yet\nworker-8: it has no pod yet\n"
           "worker-9: it has no pod yet\nand 2 more pods have no log\n");
}

static void expect_refused(const char *role, int64_t index, const char *message)
{
    SCOPED_JSON *job = json_of(JOB("2", ""));
    struct command_line line = line_of(role, index);
    struct error error = ERROR_INIT;
    cr_assert_eq(log_place_check(&line, job, &error), -1);
    cr_expect_str_eq(error.message, message);
}

Test(log_absent, a_place_that_the_crew_does_not_have_is_refused)
{
    SCOPED_JSON *job = json_of(JOB("2", ""));
    struct command_line line = line_of("worker", 1);
    cr_expect_eq(log_place_check(&line, job, NULL), 0);
    line = line_of(NULL, 1);
    cr_expect_eq(log_place_check(&line, job, NULL), 0);
    expect_refused("worker", 2, "digits has no worker 2: this role's indices are 0 to 1");
    expect_refused("chief", -1, "digits has no role chief");
    expect_refused("evaluator", 0, "digits has no role evaluator");
    expect_refused(NULL, 9, "no role of digits has an index 9");
}
