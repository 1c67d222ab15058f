/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/why.h"

#include "job_json.h"
#include "operator/cli/job_condition.h"

static void expect_with(const char *job, const char *pods, const char *events, const char *sweep, const char *expected)
{
    SCOPED_JSON *job_object = json_of(job);
    SCOPED_JSON *pod_list = json_of(pods);
    SCOPED_JSON *event_list = json_of(events);
    SCOPED_JSON *sweep_object = json_of(sweep);
    struct why_input input = {
        .job = job_object, .pods = pod_list, .events = event_list, .sweep = sweep_object, .now_ms = JOB_NOW};
    SCOPED_BUFFER text = BUFFER_INIT(WHY_MAX);
    why_print(&input, &text);
    cr_expect_str_eq(buffer_text(&text), expected);
}

static void expect(const char *job, const char *pods, const char *events, const char *expected)
{
    expect_with(job, pods, events, "{}", expected);
}

#define JOB(spec, status)                                                                                              \
    "{'metadata':{'name':'digits','namespace':'ml','creationTimestamp':'2026-11-20T14:00:00Z'},'spec':{" spec          \
    "},'status':{" status "}}"
#define PENDING                                                                                                        \
    "'conditions':[{'type':'Running','status':'False','reason':'CrewIncomplete','message':'waiting "                   \
    "for worker 0'}]"
#define SUSPENDED(reason, message)                                                                                     \
    "'conditions':[{'type':'Suspended','status':'True','reason':'" reason "','message':'" message                      \
    "'},{'type':'Scheduled','status':'False','reason':'Suspended','message':'the job is suspended'}]"
#define POD(more) "{'metadata':{'name':'digits-worker-0-1','labels':{'coxswain.dev/current':'true'}" more "}"

Test(why, a_run_that_was_interrupted)
{
    SCOPED_JSON *job = json_of("{'metadata':{'name':'digits'},'spec':{},'status':{'readySummary':'2/2','conditions':["
                               "{'type':'Running','status':'True','reason':'CrewReady','message':'all run'}],"
                               "'progress':{'step':5,'totalSteps':1000,'lastCheckpointStep':4}}}");
    SCOPED_JSON *over = json_of("{'status':{'conditions':[{'type':'Succeeded','status':'True'}]}}");
    struct why_input input = {.job = job, .now_ms = JOB_NOW};
    SCOPED_BUFFER text = BUFFER_INIT(WHY_MAX);
    job_mark_interrupted(job, "cox run /d.yaml");
    job_mark_interrupted(over, NULL);
    why_print(&input, &text);
    cr_expect_str_eq(buffer_text(&text),
                     "digits waits for a user to run it again: it was interrupted after step 5 (its "
                     "newest checkpoint is of step 4), and goes on with the same `cox run` command");
    input.again = "cox run /d.yaml";
    buffer_clear(&text);
    why_print(&input, &text);
    cr_expect_str_eq(buffer_text(&text),
                     "digits waits for a user to run it again: it was interrupted after step 5 (its "
                     "newest checkpoint is of step 4), and goes on with: cox run /d.yaml");
    cr_expect_str_eq(json_string_at(job_condition(job, "Interrupted"), "message", ""),
                     "its cox run has ended; to continue: cox run /d.yaml");
    cr_expect_str_eq(job_state(job), "Interrupted");
    cr_expect_str_eq(job_state(over), "Succeeded");
    cr_expect_str_eq(json_string_at(job, "status.readySummary", ""), "0");
}

Test(why, a_person_or_a_controller)
{
    expect(JOB("", ""), "[]", "[]",
           "digits waits for an operator: none has seen it yet; check that coxswain-operator runs, holds its Lease, "
           "and watches namespace ml");
    expect(JOB("'managedBy':'example.com/other'", ""), "[]", "[]",
           "digits waits for the controller example.com/other (spec.managedBy), which has not seen it yet");
    expect(JOB("'managedBy':'kueue.x-k8s.io/multikueue'", ""), "[]", "[]",
           "digits is run by MultiKueue in another cluster (spec.managedBy): kubectl describe workload digits says in "
           "which; there cox why says more");
    expect(JOB("'managedBy':'kueue.x-k8s.io/multikueue'", SUSPENDED("Queued", "waiting in queue research")), "[]", "[]",
           "digits waits for its queue to admit it: waiting in queue research");
    expect(JOB("'suspend':true", SUSPENDED("Suspended", "")), "[]", "[]",
           "digits waits for a user to resume it: it is suspended (cox resume digits)");
    expect(JOB("'suspend':true", SUSPENDED("Suspended", "")), "[" POD("},'status':{'phase':'Running'}") "]", "[]",
           "digits waits for the end of pod digits-worker-0-1: it is being suspended");
}

Test(why, its_place_in_the_queue)
{
    SCOPED_JSON *job = json_of(JOB("", SUSPENDED("Queued", "waiting in queue research")));
    SCOPED_JSON *pending =
        json_of("{'items':[{'metadata':{'name':'other'},'positionInClusterQueue':0,'positionInLocalQueue':0},"
                "{'metadata':{'name':'digits'},'positionInClusterQueue':11,'positionInLocalQueue':1}]}");
    struct why_input input = {.job = job, .pending = pending, .now_ms = JOB_NOW};
    SCOPED_BUFFER text = BUFFER_INIT(WHY_MAX);
    why_print(&input, &text);
    cr_expect_str_eq(buffer_text(&text), "digits waits for its queue to admit it: waiting in queue research; it is "
                                         "number 2 in its LocalQueue and number 12 in the ClusterQueue");
}

Test(why, a_change_that_no_operator_has_looked_at)
{
    expect("{'metadata':{'name':'digits','namespace':'ml','generation':3},'spec':{'suspend':true},"
           "'status':{'observedGeneration':2,'conditions':[{'type':'Running','status':'True'}]}}",
           "[" POD("},'status':{'phase':'Running'}") "]", "[]",
           "digits waits for an operator: none has seen its last change yet; check that coxswain-operator runs, holds "
           "its Lease, and watches namespace ml");
}

Test(why, quota_and_other_refusals)
{
    expect(JOB("", "'conditions':[{'type':'Scheduled','status':'False','reason':'QuotaExceeded',"
                   "'message':'exceeded quota: team, requested: pods=1'}]"),
           "[]", "[]", "digits waits for room in the namespace's quota: exceeded quota: team, requested: pods=1");
    expect(
        JOB("", "'conditions':[{'type':'Scheduled','status':'False','reason':"
                "'WaitingForPredecessor','message':'waiting until 2 pods of an earlier job are gone'}]"),
        "[]", "[]",
        "digits waits for the end of an earlier job of the same name: waiting until 2 pods of an earlier job are gone");
}

Test(why, a_queue_that_has_not_admitted_it)
{
    expect(
        JOB("", SUSPENDED("Queued", "waiting in queue team: insufficient quota for cpu in flavor default")), "[]", "[]",
        "digits waits for its queue to admit it: waiting in queue team: insufficient quota for cpu in flavor default");
    expect(JOB("", SUSPENDED("Evicted", "evicted from queue team: preempted")), "[]", "[]",
           "digits waits for its queue to admit it again: evicted from queue team: preempted");
    expect(JOB("", SUSPENDED("KueueMissing", "the cluster does not serve the Workloads of Kueue")), "[]", "[]",
           "digits waits for Kueue: the cluster does not serve the Workloads of Kueue");
}

Test(why, a_successor_without_a_place_and_what_it_has_no_words_for)
{
    expect(JOB("", "'conditions':[{'type':'Scheduled','status':'False','reason':'Queued','message':"
                   "'the nodes that Kueue has chosen for the pods are not known yet'}]"),
           "[]", "[]",
           "digits waits for its queue to admit it: the nodes that Kueue has chosen for the pods are not known yet");
    expect(JOB("", "'conditions':[{'type':'Scheduled','status':'False','reason':'CreateForbidden',"
                   "'message':'violates PodSecurity'}]"),
           "[]", "[]", "digits waits (CreateForbidden): violates PodSecurity");
}

Test(why, a_spec_that_a_newer_operator_refuses)
{
    expect(JOB("", "'conditions':[{'type':'Running','status':'True','reason':'CrewComplete'},"
                   "{'type':'Scheduled','status':'False','reason':'InvalidSpec','message':'leave momentum out.'}]"),
           "[]", "[]", "digits runs, and waits for a spec that the operator accepts: leave momentum out");
}

Test(why, saves_that_fail)
{
    expect(JOB("",
               "'conditions':[{'type':'Running','status':'True','reason':'CrewComplete'},"
               "{'type':'CheckpointsFailing','status':'True','reason':'VolumeFull','message':'save step 4: full.'}]"),
           "[]", "[]", "digits waits for nothing: it runs; but it cannot save (VolumeFull): save step 4: full");
}

Test(why, nodes_that_are_avoided)
{
    expect(JOB("",
               "'conditions':[{'type':'Running','status':'True','reason':'CrewComplete'},"
               "{'type':'AvoidingNodes','status':'True','reason':'NodeFailures','message':'new pods avoid node n until "
               "noon.'}]"),
           "[]", "[]", "digits waits for nothing: it runs; new pods avoid node n until noon");
    expect(JOB("",
               "'conditions':[{'type':'Succeeded','status':'True','message':'done'},"
               "{'type':'AvoidingNodes','status':'True','reason':'NodeFailures','message':'new pods avoid node n'}]"),
           "[]", "[]", "digits waits for nothing: it has succeeded: done");
}

Test(why, a_straggler_is_named)
{
    expect(JOB("", "'conditions':[{'type':'Running','status':'True','reason':'CrewComplete'},"
                   "{'type':'Straggling','status':'True','reason':'StragglerFound','message':'worker 2 is slow.'}]"),
           "[]", "[]", "digits waits for nothing: it runs; but its worker 2 is slow");
    expect(JOB("", "'conditions':[{'type':'Running','status':'True','reason':'CrewComplete'},"
                   "{'type':'Straggling','status':'False','reason':'NoStraggler','message':'none'}]"),
           "[]", "[]", "digits waits for nothing: it runs");
}

Test(why, growth_that_waits_in_a_queue_is_told)
{
    expect(
        JOB("",
            "'conditions':[{'type':'Running','status':'True','reason':'CrewComplete'},"
            "{'type':'Scheduled','status':'True','reason':'GrowthQueued','message':'2 more workers wait in queue q'}]"),
        "[]", "[]", "digits waits for nothing: it runs; 2 more workers wait in queue q");
}

#define WITHOUT_STEP(seconds, message)                                                                                 \
    JOB("'runPolicy':{'progressDeadlineSeconds':" #seconds "}",                                                        \
        "'controllerState':{'progressedAt':'2026-11-20T14:00:20Z'},'progress':{'step':50,'totalSteps':100},"           \
        "'conditions':[{'type':'Running','status':'True','reason':'CrewComplete','message':'" message "'}]")

Test(why, a_crew_without_a_new_step)
{
    expect(WITHOUT_STEP(81, "all pods are ready"), "[]", "[]", "digits waits for nothing: it runs, step 50 of 100");
    expect(WITHOUT_STEP(80, "all pods are ready"), "[]", "[]",
           "digits waits for nothing: it runs, step 50 of 100; no new step for 40s, and progressDeadlineSeconds allows "
           "80s");
    expect(WITHOUT_STEP(40, "the crew is left alone."), "[]", "[]",
           "digits waits for nothing: it runs, step 50 of 100; no new step for 40s, and progressDeadlineSeconds allows "
           "40s: the crew is left alone");
}

Test(why, strangers_at_the_ports_of_a_crew_whose_members_are_missing)
{
    expect(JOB("", "'conditions':[{'type':'Running','status':'True','reason':'CrewComplete'},"
                   "{'type':'JoinBlocked','status':'True','reason':'UnauthenticatedConnections','message':'members are "
                   "missing, and 10.1.2.3 knocks.'}]"),
           "[]", "[]", "digits runs, and waits for members to join: members are missing, and 10.1.2.3 knocks");
}

Test(why, a_back_off)
{
    expect(JOB("", "'restarts':{'total':3},'controllerState':{'roles':[{'role':'worker','backoffUntil':"
                   "'2026-11-20T14:01:08Z'}]},'conditions':[{'type':'Restarting','status':'True','reason':'PodFailed','"
                   "message':'worker 1: exited\\n with 1.'}]"),
           "[]", "[]",
           "digits waits for the end of its back-off in 8s, after 3 restarts; the last: worker 1: exited  with 1");
}

Test(why, a_back_off_of_the_evaluator_is_not_the_crews)
{
    expect(JOB("", "'restarts':{'total':3},'controllerState':{'backoffUntil':'2026-11-20T14:05:08Z','roles':[{'role':"
                   "'worker','pending':'1','backingOff':'1','backoffUntil':'2026-11-20T14:01:08Z'},{'role':'evaluator',"
                   "'pending':'0','backingOff':'0','backoffUntil':'2026-11-20T14:05:08Z'}]},'conditions':[{'type':"
                   "'Restarting','status':'True','reason':'PodFailed','message':'worker 1: exited with 1.'}]"),
           "[]", "[]",
           "digits waits for the end of its back-off in 8s, after 3 restarts; the last: worker 1: exited with 1");
}

Test(why, a_back_off_of_a_pod_that_the_crew_can_do_without)
{
    expect(JOB("",
               "'restarts':{'total':3},'controllerState':{'backoffUntil':'2026-11-20T14:01:08Z'},'conditions':[{'type'"
               ":'Running',"
               "'status':'True','reason':'CrewComplete'},{'type':'Restarting','status':'True','reason':'PodFailed',"
               "'message':'evaluator 0: exited with 1.'},{'type':'Scheduled','status':'False','reason':'Pending',"
               "'message':'pods are being created and scheduled'}]"),
           "[]", "[]",
           "digits waits for nothing: it runs; a pod that the crew can run without is replaced in 8s: evaluator 0: "
           "exited with "
           "1");
}

Test(why, a_pod)
{
    expect(JOB("", PENDING),
           "[" POD("},'status':{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','message':'0/3 "
                   "nodes are available: 3 Insufficient nvidia.com/gpu.'}]}") "]",
           "[]",
           "digits waits for a node for pod digits-worker-0-1: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu");
    expect(JOB("", PENDING),
           "[" POD("},'status':{'phase':'Pending','containerStatuses':[{'name':'trainer','state':{'waiting':{'reason':"
                   "'ImagePullBackOff','message':'Back-off pulling image x'}}}]}") "]",
           "[]",
           "digits waits for container trainer of pod digits-worker-0-1 to start: ImagePullBackOff: Back-off pulling "
           "image x");
    expect(JOB("", PENDING),
           "[" POD("},'status':{'phase':'Pending','initContainerStatuses':[{'name':'coxswain-download-0','state':{"
                   "'running':{}}}]}") "]",
           "[]",
           "digits waits for pod digits-worker-0-1, which downloads files: kubectl logs digits-worker-0-1 -c "
           "coxswain-download-0 shows how far it is");
    expect(JOB("", PENDING), "[" POD("},'status':{'phase':'Running'}") "]", "[]",
           "digits waits for pod digits-worker-0-1 to be ready; waiting for worker 0");
    expect(JOB("", PENDING),
           "[" POD(",'deletionTimestamp':'2026-11-20T14:00:50Z','deletionGracePeriodSeconds':30},'spec':{'nodeName':"
                   "'n1'},'status':{'phase':'Running'}") "]",
           "[]",
           "digits waits for the end of pod digits-worker-0-1, which was asked to end 40s ago and should be gone: see "
           "whether its node n1 is alive");
}

Test(why, a_pod_of_a_gang_for_which_there_is_no_node_before_those_that_would_fit)
{
    expect(JOB("", PENDING),
           "[{'metadata':{'name':'digits-worker-0-1','labels':{'coxswain.dev/current':'true'}},'status':{'phase':"
           "'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':'Schedulable','message':'Pod "
           "ml/digits-worker-0-1 can possibly be assigned to n1'}]}},"
           "{'metadata':{'name':'digits-worker-1-1','labels':{'coxswain.dev/current':'true'}},'status':{'phase':"
           "'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable','message':'0/3 "
           "nodes are unavailable: 3 Insufficient cpu.'}]}}]",
           "[]", "digits waits for a node for pod digits-worker-1-1: 0/3 nodes are unavailable: 3 Insufficient cpu");
}

Test(why, the_newest_event_about_a_pod)
{
    expect(JOB("", PENDING), "[" POD("},'status':{'phase':'Pending'}") "]",
           "[{'type':'Warning','reason':'FailedMount','note':'volume runs: not found','eventTime':"
           "'2026-11-20T14:00:30Z','regarding':{'name':'digits-worker-0-1'}},{'type':'Warning','reason':'Old','note':"
           "'x','eventTime':'2026-11-20T14:00:10Z','regarding':{'name':'digits-worker-0-1'}},{'type':'Warning',"
           "'reason':'Other','note':'x','eventTime':'2026-11-20T14:00:40Z','regarding':{'name':'else'}}]",
           "digits waits for pod digits-worker-0-1 to start: FailedMount: volume runs: not found");
}

#define RUNNING                                                                                                        \
    "'progress':{'step':40,'totalSteps':100,'secondsRemaining':35},'conditions':[{'type':'Running',"                   \
    "'status':'True','reason':'CrewSufficient','message':'3 of 4 workers are ready, and workers.minReplicas is 2'}"

Test(why, a_crew_that_runs_and_what_it_can_do_without)
{
    expect(JOB("", RUNNING "]"),
           "[{'metadata':{'name':'digits-worker-3-2','labels':{'coxswain.dev/current':'true'}},"
           "'status':{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
           "'message':'0/3 nodes are available.'}]}}]",
           "[]",
           "digits runs, step 40 of 100, 35s left, and waits for a node for pod digits-worker-3-2: 0/3 nodes are "
           "available");
    expect(JOB("", RUNNING ",{'type':'Scheduled','status':'False','reason':'QuotaExceeded','message':'exceeded quota: "
                           "team'}]"),
           "[]", "[]",
           "digits runs, step 40 of 100, 35s left, and waits for room in the namespace's quota: exceeded quota: team");
}

Test(why, nothing)
{
    expect(JOB_RUNNING, "[]", "[]", "digits waits for nothing: it runs, step 120 of 300, 35s left");
    expect(JOB("", "'conditions':[{'type':'Failed','status':'True','reason':'PodRejected','message':"
                   "'no such field'}]"),
           "[]", "[]", "digits waits for nothing: it has failed: no such field");
    expect(JOB("", PENDING), "[]", "[]", "digits waits (CrewIncomplete): waiting for worker 0");
}

#define TRIAL(spec, status)                                                                                            \
    "{'metadata':{'name':'digits-1','namespace':'ml','labels':{'coxswain.dev/sweep-name':'digits',"                    \
    "'coxswain.dev/trial':'1'}},'spec':{" spec "},'status':{" status "}}"

static void expect_trial(const char *sweep, const char *expected)
{
    expect_with(TRIAL("'suspend':true", SUSPENDED("Suspended", "")), "[]", "[]", sweep, expected);
}

#define SWEEP(spec, state, conditions)                                                                                 \
    "{'metadata':{'name':'digits'},'spec':{" spec "},'status':{'conditions':[" conditions "],'results':["              \
    "{'state':'Succeeded'},{'state':'" state "','step':20}]}}"

Test(why, a_trial_that_waits_for_its_sweep)
{
    expect(TRIAL("",
                 "'progress':{'step':20,'totalSteps':60},'conditions':[{'type':'Running','status':'False','reason':"
                 "'CrewIncomplete','message':'paused after step 20 of 60, which is saved: the sweep decides whether "
                 "the job continues'}]"),
           "[" POD("},'status':{'phase':'Running'}") "]", "[]",
           "digits-1 waits at a rung, after step 20 of 60, until its sweep digits has decided whether it continues");
    expect_trial(SWEEP("", "Paused", ""),
                 "digits-1 waits, paused after step 20, until it is among the best trials of its sweep digits at that "
                 "rung");
    expect_trial(SWEEP("'suspend':true", "Paused", ""),
                 "digits-1 waits for a user to resume its sweep digits, which is suspended (cox sweep resume digits)");
    expect_trial(SWEEP("'suspend':true", "Running", ""),
                 "digits-1 waits for a user to resume its sweep digits, which is suspended (cox sweep resume digits)");
    expect_trial(SWEEP("", "Paused", "{'type':'Complete','status':'True'}"),
                 "digits-1 waits for nothing: its sweep digits is over, and it had paused after step 20 (cox resume "
                 "digits-1 lets it train to its end)");
    expect_trial(SWEEP("", "Stopped", ""),
                 "digits-1 waits for nothing: its sweep digits stopped it early, after step 20");
}

static void expect_kept_trial(const char *sweep_text, const char *expected)
{
    SCOPED_JSON *job = json_of(TRIAL("'suspend':true", SUSPENDED("Suspended", "")));
    SCOPED_JSON *sweep = json_of(sweep_text);
    SCOPED_BUFFER text = BUFFER_INIT(WHY_MAX);
    struct why_input input = {
        .job = job, .sweep = sweep, .kept = true, .again = "cox sweep run s.yaml", .now_ms = JOB_NOW};
    job_mark_interrupted(job, input.again);
    cr_expect_str_eq(job_state(job), "Suspended");
    why_print(&input, &text);
    cr_expect_str_eq(buffer_text(&text), expected);
}

Test(why, a_suspended_trial_of_a_run_that_has_ended)
{
    expect_kept_trial(SWEEP("", "Paused", "{'type':'Complete','status':'True'}"),
                      "digits-1 waits for nothing: its sweep digits is over, and it had paused after step 20");
    expect_kept_trial(SWEEP("", "Stopped", ""),
                      "digits-1 waits for nothing: its sweep digits stopped it early, after step 20");
    expect_kept_trial(SWEEP("", "Paused", ""), "digits-1 waits for a user to run its sweep digits again: its run was "
                                               "interrupted, and goes on with: cox sweep run s.yaml");
}

Test(why, a_suspended_trial_whose_sweep_is_not_known)
{
    expect_trial("{}", "digits-1 waits for a user to resume it: it is suspended (cox resume digits-1)");
    expect_trial(SWEEP("", "Running", ""),
                 "digits-1 waits for a user to resume it: it is suspended (cox resume digits-1)");
}

#define DELETED(more)                                                                                                  \
    "{'metadata':{'name':'digits','namespace':'ml','deletionTimestamp':'2026-11-20T14:00:00Z'" more                    \
    "},'spec':{},'status':{'conditions':[{'type':'Running','status':'True'}]}}"

Test(why, a_job_that_is_being_deleted)
{
    expect(DELETED(",'finalizers':['example.com/archive']"), "[]", "[]",
           "digits is being deleted, for 60s, and waits for its finalizer example.com/archive");
    expect(
        DELETED(",'finalizers':['example.com/archive','foregroundDeletion']"),
        "[" POD("},'status':{'phase':'Running'}") "]", "[]",
        "digits is being deleted, for 60s, and waits for its finalizers example.com/archive, foregroundDeletion: the "
        "end of pod digits-worker-0-1");
    expect(DELETED(""), "[]", "[]", "digits is being deleted, for 60s, and will be gone soon");
}
