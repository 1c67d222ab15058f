/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/environment_build.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/environment.h"
#include "operator/controller/objects/environment_tpu.h"
#include "tests/unit/json_of.h"

static struct training_job parse(const char *spec)
{
    static char text[4096];
    snprintf(
        text, sizeof text,
        "{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{\"image\":\"a/b:1\",%s},"
        "\"status\":{\"controllerState\":{\"incarnation\":5,\"attempt\":2}}}",
        spec);
    struct training_job job;
    struct error error = ERROR_INIT;
    SCOPED_JSON *object = json_of(text);
    cr_assert_eq(training_job_parse(object, &job, &error), 0, "%s", error.message);
    return job;
}

/* Expects the environment of a pod, one line for each variable. */
static void expect(const char *spec, enum role role, int64_t index, const char *expected)
{
    SCOPED(training_job_release) struct training_job job = parse(spec);
    struct error error = ERROR_INIT;
    SCOPED_FREE char *document = NULL;
    cr_assert_eq(environment_document(&job, &document, &error), 0, "%s", error.message);
    SCOPED_JSON *list = environment_build(&job, role, index, document);
    SCOPED_BUFFER text = BUFFER_INIT(1 << 20);
    for (const struct json *item = json_first(list); item; item = json_next(item))
        buffer_format(&text, "%s=%s\n", json_string_at(item, "name", ""),
                      json_string_at(item, "value", json_string_at(item, "valueFrom.fieldRef.fieldPath", "?")));
    cr_expect_str_eq(buffer_text(&text), expected);
}

#define ALL(role, index)                                                                                               \
    "COXSWAIN_INCARNATION=5\nCOXSWAIN_ATTEMPT=2\nCOXSWAIN_JOB_UID=u-1\nCOXSWAIN_ROLE=" role "\nCOXSWAIN_INDEX=" index  \
    "\n"
#define POD_IP "COXSWAIN_POD_IP=status.podIP\n"
#define HOST(role, index) "digits-" role "-" index ".digits.ml.svc"

#define TENSORFLOW "\"tensorflow\":{},"

Test(environment, tensorflow_workers)
{
    expect(TENSORFLOW "\"workers\":{\"replicas\":2}", ROLE_WORKER, 1,
           ALL("worker", "1") POD_IP
           "TF_CONFIG={\"cluster\":{\"worker\":[\"" HOST("worker", "0") ":2222\",\"" HOST("worker", "1") //
           ":2222\"]},\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}\n");
}

#define FOUR_ROLES TENSORFLOW "\"workers\":{\"replicas\":2},\"chief\":{},\"parameterServers\":{},\"evaluator\":{}"
#define CLUSTER_OF_FOUR                                                                                                \
    "{\"chief\":[\"" HOST("chief", "0") ":2222\"],\"worker\":[\"" HOST("worker", "0") ":2222\",\"" HOST(               \
        "worker", "1") ":2222\"],\"ps\":[\"" HOST("ps", "0") ":2222\"]}"

Test(environment, tensorflow_roles_and_their_evaluator_beside_them)
{
    expect(FOUR_ROLES, ROLE_PS, 0,
           ALL("ps", "0") POD_IP "TF_CONFIG={\"cluster\":" CLUSTER_OF_FOUR
                                 ",\"task\":{\"type\":\"ps\",\"index\":0},\"environment\":\"cloud\"}\n");
    expect(FOUR_ROLES, ROLE_EVALUATOR, 0,
           ALL("evaluator", "0") POD_IP "TF_CONFIG={\"cluster\":" CLUSTER_OF_FOUR
                                        ",\"task\":{\"type\":\"evaluator\",\"index\":0},\"environment\":\"cloud\"}\n");
}

#define ELASTIC_SERVERS                                                                                                \
    TENSORFLOW "\"workers\":{\"replicas\":3,\"minReplicas\":2,\"maxReplicas\":4},"                                     \
               "\"chief\":{},\"parameterServers\":{\"replicas\":2}"

Test(environment, tensorflow_elastic_workers_see_every_ps_and_themselves)
{
    expect(ELASTIC_SERVERS, ROLE_WORKER, 2,
           ALL("worker", "2") POD_IP
           "TF_CONFIG={\"cluster\":{\"ps\":[\"" HOST("ps", "0") ":2222\",\"" HOST("ps", "1") //
           ":2222\"],\"worker\":{\"2\":\"" HOST("worker", "2") ":2222\"}},"
                                                               "\"task\":{\"type\":\"worker\",\"index\":2},"
                                                               "\"environment\":\"cloud\"}\n");
    expect(ELASTIC_SERVERS, ROLE_CHIEF, 0,
           ALL("chief", "0") POD_IP
           "TF_CONFIG={\"cluster\":{\"chief\":[\"" HOST("chief", "0") ":2222\"],\"worker\":[\"" HOST("worker", "0") //
           ":2222\",\"" HOST("worker", "1") ":2222\",\"" HOST("worker", "2") ":2222\"],\"ps\":[\"" HOST("ps", "0")  //
           ":2222\",\"" HOST("ps", "1") ":2222\"]},\"task\":{\"type\":\"chief\",\"index\":0},"
                                        "\"environment\":\"cloud\"}\n");
}

#define PYTORCH "\"pytorch\":{},"

Test(environment, pytorch)
{
    expect("\"workers\":{\"replicas\":2},\"devices\":{\"type\":\"GPU\",\"count\":4},\"storage\":[{\"name\":\"runs\","
           "\"emptyDir\":{}}],\"pytorch\":{\"checkpoint\":{\"storage\":\"runs\",\"path\":\"ddp\"}}",
           ROLE_WORKER, 1,
           ALL("worker", "1") "COXSWAIN_CHECKPOINT_DIR=/coxswain/storage/runs/ddp\n"
                              "COXSWAIN_STORAGE=runs=/coxswain/storage/runs\n" POD_IP "PYTHONUNBUFFERED=1\n"
                              "MASTER_ADDR=" HOST("worker", "0") "\nMASTER_PORT=23456\nWORLD_SIZE=2\nRANK=1\n"
                                                                 "PET_NNODES=2\nPET_NPROC_PER_NODE=4\nPET_NODE_RANK=1\n"
                                                                 "PET_MASTER_ADDR=" HOST(
                                                                     "worker", "0") "\nPET_MASTER_PORT=23456\n");
}

Test(environment, pytorch_ranks_begin_with_the_chief)
{
    expect(PYTORCH "\"workers\":{\"replicas\":2},\"chief\":{}", ROLE_WORKER, 1,
           ALL("worker", "1") POD_IP "PYTHONUNBUFFERED=1\nMASTER_ADDR=" HOST("chief", "0") //
           "\nMASTER_PORT=23456\nWORLD_SIZE=3\nRANK=2\nPET_NNODES=3\nPET_NPROC_PER_NODE=1\nPET_NODE_RANK=2\n"
           "PET_MASTER_ADDR=" HOST("chief", "0") "\nPET_MASTER_PORT=23456\n");
}

Test(environment, pytorch_elastic_on_a_port_of_its_own)
{
    expect(PYTORCH
           "\"workers\":{\"replicas\":2,\"minReplicas\":1,\"maxReplicas\":8,\"template\":{\"spec\":{\"containers\":["
           "{\"name\":\"trainer\",\"ports\":[{\"name\":\"crew\",\"containerPort\":29500}]}]}}},"
           "\"runPolicy\":{\"backoffLimit\":3}",
           ROLE_WORKER, 0,
           ALL("worker", "0") POD_IP "PYTHONUNBUFFERED=1\nMASTER_ADDR=" HOST("worker", "0") //
           "\nMASTER_PORT=29500\nWORLD_SIZE=2\nRANK=0\nPET_NNODES=1:8\nPET_NPROC_PER_NODE=1\nPET_NODE_RANK=0\n"
           "PET_MASTER_ADDR=" HOST("worker", "0") "\nPET_MASTER_PORT=29500\nPET_RDZV_ENDPOINT=" HOST("worker", "0") //
           ":29500\nPET_RDZV_BACKEND=c10d\nPET_MAX_RESTARTS=3\n");
}

#define JAX "\"jax\":{},"

Test(environment, jax)
{
    expect(JAX "\"workers\":{\"replicas\":3}", ROLE_WORKER, 2,
           ALL("worker", "2") POD_IP "PYTHONUNBUFFERED=1\nJAX_COORDINATOR_ADDRESS=" HOST("worker", "0") //
           ":8476\nJAX_NUM_PROCESSES=3\nJAX_PROCESS_ID=2\nCOORDINATOR_ADDRESS=" HOST("worker", "0")     //
           "\nCOORDINATOR_PORT=8476\nNUM_PROCESSES=3\nPROCESS_ID=2\n");
}

/* Each host of a slice knows all of them, and which one it is. */
Test(environment, hosts_of_a_tpu_slice)
{
    expect(JAX "\"workers\":{\"replicas\":2},\"devices\":{\"type\":\"TPU\",\"count\":4}", ROLE_WORKER, 1,
           ALL("worker", "1") POD_IP "PYTHONUNBUFFERED=1\nJAX_COORDINATOR_ADDRESS=" HOST("worker", "0") //
           ":8476\nJAX_NUM_PROCESSES=2\nJAX_PROCESS_ID=1\nCOORDINATOR_ADDRESS=" HOST("worker", "0")     //
           "\nCOORDINATOR_PORT=8476\nNUM_PROCESSES=2\nPROCESS_ID=1\n"
           "TPU_WORKER_ID=1\nTPU_WORKER_HOSTNAMES=" HOST("worker", "0") "," HOST("worker", "1") "\n");
}

/* Six hosts in three slices: each knows the hosts of its own, and where all slices meet. */
Test(environment, several_tpu_slices)
{
    expect(JAX "\"workers\":{\"replicas\":6},\"devices\":{\"type\":\"TPU\",\"count\":4,\"slices\":3}", ROLE_WORKER, 3,
           ALL("worker", "3") POD_IP "PYTHONUNBUFFERED=1\nJAX_COORDINATOR_ADDRESS=" HOST("worker", "0") //
           ":8476\nJAX_NUM_PROCESSES=6\nJAX_PROCESS_ID=3\nCOORDINATOR_ADDRESS=" HOST("worker", "0")     //
           "\nCOORDINATOR_PORT=8476\nNUM_PROCESSES=6\nPROCESS_ID=3\n"
           "TPU_WORKER_ID=1\nTPU_WORKER_HOSTNAMES=" HOST("worker", "2") "," HOST("worker", "3") //
           "\nMEGASCALE_COORDINATOR_ADDRESS=" HOST("worker", "0") "\nMEGASCALE_PORT=8081\n"
                                                                  "MEGASCALE_NUM_SLICES=3\nMEGASCALE_SLICE_ID=1\n");
}

/* A pod of our own worker is a slice by itself, whatever the crew. */
Test(environment, tpus_of_our_own_worker)
{
    SCOPED(training_job_release)
    struct training_job job = parse(JAX "\"workers\":{\"replicas\":1000},\"devices\":{\"type\":\"TPU\",\"count\":4}");
    struct error error = ERROR_INIT;
    struct json *list = json_new_array();
    job.framework = FRAMEWORK_COXSWAIN;
    cr_expect_eq(environment_tpu_check(&job, &error), 0, "%s", error.message);
    environment_add_tpu(&job, ROLE_WORKER, 7, list);
    cr_expect_str_eq(json_string_at(json_first(list), "name", ""), "TPU_WORKER_ID");
    cr_expect_str_eq(json_string_at(json_first(list), "value", ""), "0");
    cr_expect_str_eq(json_string_at(json_next(json_first(list)), "name", ""), "TPU_WORKER_HOSTNAMES");
    cr_expect_str_eq(json_string_at(json_next(json_first(list)), "value", ""), "localhost");
    json_free(list);
}

Test(environment, names_of_a_tpu_slice_have_a_ceiling)
{
    SCOPED(training_job_release)
    struct training_job job = parse(JAX "\"workers\":{\"replicas\":1000},\"devices\":{\"type\":\"TPU\"}");
    job.name = "a-name-of-forty-characters-which-is-long";
    job.namespace = "a-namespace-of-sixty-three-characters-which-is-as-long-as-can-be";
    SCOPED_FREE char *document = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(environment_document(&job, &document, &error), -1);
    cr_assert_eq(error.kind, ERROR_TOO_LARGE);
    cr_assert(strstr(error.message, "use fewer pods"), "%s", error.message);
    job.name = "d";
    job.namespace = "ml";
    cr_assert_eq(environment_document(&job, &document, &error), 0);
}

/* Linux ends one variable at 128 KiB; ours stop before. */
Test(environment, tf_config_has_a_ceiling)
{
    SCOPED(training_job_release) struct training_job job = parse(TENSORFLOW "\"workers\":{\"replicas\":1000}");
    job.name = "a-name-of-forty-characters-which-is-long";
    job.namespace = "a-namespace-of-sixty-three-characters-which-is-as-long-as-can-be";
    SCOPED_FREE char *document = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(environment_document(&job, &document, &error), -1);
    cr_assert_eq(error.kind, ERROR_TOO_LARGE);
    cr_assert(strstr(error.message, "use fewer pods"), "%s", error.message);
    job.name = "d";
    job.namespace = "ml";
    cr_assert_eq(environment_document(&job, &document, &error), 0);
    SCOPED_JSON *list = environment_build(&job, ROLE_WORKER, 999, document);
    for (const struct json *item = json_first(list); item; item = json_next(item))
        cr_assert_leq(strlen(json_string_at(item, "value", "")), JOB_DOCUMENT_MAX);
}

Test(environment, names_that_hold_the_crew_together)
{
    cr_expect(environment_is_reserved(FRAMEWORK_TENSORFLOW, "TF_CONFIG"));
    cr_expect(environment_is_reserved(FRAMEWORK_PYTORCH, "RANK"));
    cr_expect(environment_is_reserved(FRAMEWORK_PYTORCH, "COXSWAIN_INCARNATION"));
    cr_expect(environment_is_reserved(FRAMEWORK_PYTORCH, "COXSWAIN_JOB"));
    cr_expect(environment_is_reserved(FRAMEWORK_COXSWAIN, "COXSWAIN_JOB"));
    cr_expect(environment_is_reserved(FRAMEWORK_JAX, "JAX_PROCESS_ID"));
    cr_expect(environment_is_reserved(FRAMEWORK_PYTORCH, "TPU_WORKER_ID"));
    cr_expect(environment_is_reserved(FRAMEWORK_JAX, "MEGASCALE_SLICE_ID"));
    cr_expect_not(environment_is_reserved(FRAMEWORK_PYTORCH, "TF_CONFIG"));
    cr_expect_not(environment_is_reserved(FRAMEWORK_TENSORFLOW, "RANK"));
    cr_expect_not(environment_is_reserved(FRAMEWORK_PYTORCH, "PET_NPROC_PER_NODE"));
    cr_expect_not(environment_is_reserved(FRAMEWORK_PYTORCH, "PYTHONUNBUFFERED"));
}
