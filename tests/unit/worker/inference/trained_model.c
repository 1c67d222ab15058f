/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/trained_model.h"
#include "tests/unit/json_of.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/json.h"

/* The job has left no weights, which are looked for last. */
static void expect_threads(int option, int variable, const char *words)
{
    static const char document[] =
        "{\"name\":\"test\",\"strategy\":{\"type\":\"OneDevice\"},\"model\":{\"preset\":\"mlp\"},\"data\":{\"format\":"
        "\"Synthetic\",\"examples\":600},\"training\":{\"steps\":1,\"batchSize\":10}}";
    struct job_document job;
    struct trained_model model;
    struct error error = ERROR_INIT;
    enum exit_code code;
    const struct arguments arguments = {.threads = option};
    const struct identity identity = {.threads = variable};
    SCOPED_JSON *json = json_of(document);
    cr_assert_eq(job_document_parse(json, &job, &error), 0, "%s", error.message);
    cr_assert_eq(trained_model_open(&model, &arguments, &identity, &job, TRAINED_IN_BATCHES, &code, &error), -1);
    cr_assert_not_null(strstr(error.message, "there are no weights"), "%s", error.message);
    const char *description = device_description(model.trainer.device);
    cr_expect_not_null(strstr(description, words), "%s", description);
    trained_model_release(&model);
    job_document_release(&job);
}

Test(trained_model, computes_with_the_threads_of_the_option_or_the_variable)
{
    expect_threads(0, 3, "CPU, 3 threads");
    expect_threads(2, 3, "CPU, 2 threads");
}
