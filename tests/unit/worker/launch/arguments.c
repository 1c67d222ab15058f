/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/arguments.h"

#include <criterion/criterion.h>
#include <string.h>

static int parse(struct arguments *arguments, struct error *error, const char *a, const char *b)
{
    char *values[] = {(char *)"coxswain-worker", (char *)a, (char *)b, NULL};
    int count = 1 + (a != NULL) + (b != NULL);
    return arguments_parse(count, values, arguments, error);
}

Test(arguments, nothing_said)
{
    struct arguments arguments;
    cr_assert_eq(parse(&arguments, NULL, NULL, NULL), 0);
    cr_assert_eq(arguments.http_port, HTTP_PORT_UNSAID);
    cr_assert_eq(arguments.threads, 0);
    cr_assert_null(arguments.job_file);
}

Test(arguments, options_reach_their_places)
{
    struct arguments arguments;
    cr_assert_eq(parse(&arguments, NULL, "--job=a.yaml", "--storage=digits=/data"), 0);
    cr_assert_str_eq(arguments.job_file, "a.yaml");
    cr_assert_eq(arguments.storage_count, 1);
    cr_assert_eq(parse(&arguments, NULL, "--log-format", "json"), 0);
    cr_assert_eq(arguments.format, LOG_JSON);
}

Test(arguments, parse_a_generation)
{
    struct arguments arguments;
    cr_assert_eq(parse(&arguments, NULL, "--generate", "To be"), 0);
    cr_assert_str_eq(arguments.inference.prompt, "To be");
    cr_assert_eq(arguments.inference.tokens, 256);
    cr_assert_eq(parse(&arguments, NULL, "--generate=To be", "--temperature=0"), 0);
    cr_assert_eq(arguments.inference.temperature, 0);
    cr_assert_eq(parse(&arguments, NULL, "--prompt-file=/dev/fd/3", "--seed=7"), 0);
    cr_assert_str_eq(arguments.inference.prompt_file, "/dev/fd/3");
    cr_assert(arguments_generate(&arguments.inference) && arguments_use_model(&arguments));
}

Test(arguments, nonsense_is_named)
{
    static const char *const cases[][3] = {
        {"--threads", "0", "--threads"},
        {"--threads", "two", "--threads"},
        {"--http-port", "65536", "--http-port"},
        {"--storage", "digits", "--storage"},
        {"--storage", "=x", "--storage"},
        {"--log-format", "xml", "--log-format"},
        {"--tokens", "0", "--tokens"},
        {"--temperature", "nan", "--temperature"},
        {"--temperature", "-1", "0 to 100"},
        {"--top-k", "-1", "--top-k"},
        {"--seed", "x", "--seed"},
        {"--seed", "3", "are for --generate"},
        {"--weights", "x", "init.path"},
        {"--outputs", NULL, "--outputs: is for --predict"},
        {"--describe-model", "--predict=1", "--describe-model: cannot be combined with"},
        {"--check-job", "--predict=1", "--check-job: cannot be combined with"},
        {"--data", "x.npy", "--data: is for --predict"},
        {"--compile-program=x", "--compiled-for=16", "--compiled-for"},
        {"--compile-program=x", "--compiled-on-tpus=65", "--compiled-on-tpus"},
        {"--job=x", "--topology=v5e:2x2", "--topology: is for --compile-program"},
        {"--predict=3", "--generate=x", "one at a time"},
        {"--prompt-file=x", "--generate=x", "one at a time"},
        {"--prompt-file=x", "--predict=3", "one at a time"},
        {"--frobnicate", NULL, "unknown"},
        {"job.yaml", NULL, "job.yaml"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arguments arguments;
        struct error error = ERROR_INIT;
        cr_assert_eq(parse(&arguments, &error, cases[i][0], cases[i][1]), -1, "%s", cases[i][0]);
        cr_assert_not_null(strstr(error.message, cases[i][2]), "%s", error.message);
    }
}
