/* SPDX-License-Identifier: Apache-2.0
 *
 * A separate chief with a server of another version, which the test plays.
 */
#include "worker/train/ps_chief.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/loopback.h"
#include "tests/unit/worker/comm/foreign.h"
#include "tests/unit/worker/strategy/learner.h"
#include "worker/comm/rpc.h"
#include "worker/parameter_server/message.h"

static const char job[] = "{\"name\":\"test\",\"strategy\":{\"type\":\"ParameterServer\"},"
                          "\"model\":{\"preset\":\"mlp\",\"width\":8},"
                          "\"data\":{\"format\":\"Synthetic\",\"examples\":90},"
                          "\"training\":{\"steps\":7,\"batchSize\":24,\"seed\":5,"
                          "\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.02\"}}}";

/* It says nothing but `beat`. */
static uint16_t play_server(const char *host, struct buffer *beat, struct rpc **ret_rpc)
{
    static const struct rpc_method methods[] = {{PS_METHOD_EXCHANGE, foreign_opened},
                                                {PS_METHOD_CONTROL, foreign_opened}};
    struct rpc_server *server;
    buffer_init(beat, PS_MESSAGE_MAX);
    cr_assert_eq(ps_message_encode(&(struct ps_message){.type = PS_BEAT}, beat, NULL), 0);
    foreign_message(beat->data, beat->length);
    cr_assert_eq(rpc_new(NULL, NULL, 20, ret_rpc, NULL), 0);
    cr_assert_eq(rpc_server_start(*ret_rpc, host, 0, methods, 2, beat, &server, NULL), 0);
    return rpc_server_port(server);
}

Test(ps_chief, ends_where_a_server_is_of_another_version, .timeout = 60)
{
    static struct learner learner;
    char hosts[2][LOOPBACK_HOST_MAX];
    struct rpc *rpc;
    SCOPED_BUFFER beat;
    struct error error = ERROR_INIT;
    enum exit_code code = EXIT_CODE_DONE;
    loopback_host(hosts[0], 0);
    loopback_host(hosts[1], 1);
    struct crew_seat server = {.role = "ps", .host = hosts[1], .port = play_server(hosts[1], &beat, &rpc)};
    struct crew_seat seats[] = {{.role = "chief", .host = hosts[0]}, {.role = "worker", .host = hosts[0]}};
    const struct identity identity = {
        .job_uid = "uid", .attempt = 1, .incarnation = 1, .role = "chief", .pod_ip = hosts[0]};
    const struct report_options report = {.job_uid = "", .role = "chief", .http_port = -1, .unit = "examples"};
    cr_assert(learner_open_job(&learner, job, &error) == 0 && learner_open_model(&learner, 1, 24, true, &error) == 0,
              "%s", error.message);
    struct trainer trainer = {
        .identity = &identity,
        .job = &learner.job,
        .crew = {.seats = seats, .size = 2, .least = 2, .expected = 2, .servers = &server, .server_count = 1},
        .plan = {.total_steps = 7, .replicas = 1, .logical_shards = 1, .shares = 1, .global_batch = 24},
        .graph = learner.graph};
    cr_assert_eq(report_open(&report, &trainer.report, NULL), 0);
    cr_assert_eq(ps_chief_run(&trainer, &code, &error), -1);
    cr_expect_not_null(strstr(error.message, "give all pods of the job the same image"), "%s", error.message);
    cr_expect_eq(code, EXIT_CODE_LOST_CREW);
    report_free(trainer.report);
    learner_close(&learner);
    rpc_free(rpc);
}
