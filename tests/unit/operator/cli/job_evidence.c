/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_evidence.h"

#include <string.h>

#include "tests/unit/operator/kube/loop_fixture.h"

TestSuite(job_evidence, .timeout = 60);

#define JOB(reason)                                                                                                    \
    "{\"metadata\":{\"name\":\"digits\",\"labels\":{\"kueue.x-k8s.io/queue-name\":\"research\"}},\"status\":{"         \
    "\"conditions\":[{\"type\":\"Suspended\",\"status\":\"True\",\"reason\":\"" reason "\",\"message\":\"m\"}]}}"
#define PENDING(version)                                                                                               \
    "GET /apis/visibility.kueue.x-k8s.io/" version "/namespaces/ml/localqueues/research/pendingworkloads"

static const char *job;
/* An older Kueue, which does not serve v1beta2. */
static void answer_as_cluster(struct scripted_request *request)
{
    if (strstr(request->line, "/trainingjobs/digits"))
        scripted_reply(request, 200, job);
    else if (strncmp(request->line, PENDING("v1beta1"), strlen(PENDING("v1beta1"))) == 0)
        scripted_reply(request, 200,
                       "{\"items\":[{\"metadata\":{\"name\":\"digits\"},\"positionInLocalQueue\":2,"
                       "\"positionInClusterQueue\":6}]}");
    else if (strstr(request->line, "pendingworkloads"))
        scripted_reply(request, 404, "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\"}");
    else
        scripted_reply(request, 200, "{\"items\":[]}");
}

static unsigned queues_asked(void)
{
    unsigned count = 0;
    for (int i = 0; i < server.requests; i++)
        count += strstr(server.log[i], "pendingworkloads") != NULL;
    return count;
}

static void gather(const char *text, struct job_evidence *ret_evidence)
{
    struct error error = ERROR_INIT;
    job = text;
    fixture_start(answer_as_cluster, NULL, NULL);
    struct cluster cluster = {.loop = loop, .client = client, .name_space = "ml"};
    cr_assert_eq(job_evidence_gather(&cluster, "digits", ret_evidence, &error), 0, "%s", error.message);
}

static void end(struct job_evidence *evidence)
{
    job_evidence_release(evidence);
    fixture_stop();
    scripted_server_stop(&server);
}

Test(job_evidence, the_order_of_the_queue_in_which_the_job_waits)
{
    struct job_evidence evidence;
    gather(JOB("Queued"), &evidence);
    cr_assert_not_null(evidence.pending);
    cr_expect_eq(queues_asked(), 2);
    struct why_input input = job_evidence_input(&evidence);
    SCOPED_BUFFER text = BUFFER_INIT(WHY_MAX);
    why_print(&input, &text);
    cr_expect_str_eq(buffer_text(&text), "digits waits for its queue to admit it: m; it is number 3 in its LocalQueue "
                                         "and number 7 in the ClusterQueue");
    end(&evidence);
}

Test(job_evidence, no_queue_is_asked_about_a_job_that_waits_in_none)
{
    struct job_evidence evidence;
    gather(JOB("Suspended"), &evidence);
    cr_expect_null(evidence.pending);
    cr_expect_eq(queues_asked(), 0);
    end(&evidence);
}
