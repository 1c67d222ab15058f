/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/crew.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct crew_spec digits = {
    .roles = {{"worker", 3}, {"evaluator", 1}},
    .role_count = 2,
    .host_pattern = "digits-{role}-{index}.digits.default.svc",
    .port = 2222,
};

Test(crew, the_operators_pattern)
{
    struct job_document job = {.crew = digits};
    const struct identity identity = {.role = "worker", .index = 2};
    struct crew crew;
    struct error error = ERROR_INIT;
    cr_assert_eq(crew_read(&job, &identity, &crew, &error), 0, "%s", error.message);
    cr_assert_eq(crew.size, 3);
    cr_assert_eq(crew.rank, 2);
    cr_assert_str_eq(crew.seats[1].host, "digits-worker-1.digits.default.svc");
    cr_assert_eq(crew.seats[1].port, 2222);
    crew_release(&crew);
}

Test(crew, a_given_chief_comes_first)
{
    struct job_document job = {.crew = digits};
    job.crew.roles[1] = (struct crew_role){.name = "chief", .count = 1};
    const struct identity identity = {.role = "worker", .index = 0};
    struct crew crew;
    cr_assert_eq(crew_read(&job, &identity, &crew, NULL), 0);
    cr_assert_eq(crew.size, 4);
    cr_assert_str_eq(crew.seats[0].role, "chief");
    cr_assert_eq(crew.rank, 1);
    crew_release(&crew);
}

static void expect_name(const struct crew *crew, unsigned seat, const char *role, unsigned index)
{
    const struct crew_seat name = crew_name_seat(crew, seat);
    cr_expect_str_eq(name.role, role);
    cr_expect_eq(name.index, index);
}

Test(crew, a_seat_of_a_larger_crew_is_a_workers)
{
    struct job_document job = {.crew = digits};
    const struct identity identity = {.role = "worker", .index = 0};
    struct crew crew;
    cr_assert_eq(crew_read(&job, &identity, &crew, NULL), 0);
    expect_name(&crew, 2, "worker", 2);
    expect_name(&crew, 3, "worker", 3);
    crew_release(&crew);
    job.crew.roles[1] = (struct crew_role){.name = "chief", .count = 1};
    cr_assert_eq(crew_read(&job, &identity, &crew, NULL), 0);
    expect_name(&crew, 0, "chief", 0);
    expect_name(&crew, 3, "worker", 2);
    expect_name(&crew, 4, "worker", 3);
    crew_release(&crew);
}

Test(crew, tf_config_when_the_document_has_none)
{
    struct job_document job = {0};
    const struct identity identity = {.role = "worker",
                                      .tf_config = "{\"cluster\":{\"worker\":[\"127.0.0.2:2222\",\"127.0.0.3:2222\"]},"
                                                   "\"task\":{\"type\":\"worker\",\"index\":1}}"};
    struct crew crew;
    cr_assert_eq(crew_read(&job, &identity, &crew, NULL), 0);
    cr_assert_eq(crew.size, 2);
    cr_assert_eq(crew.rank, 1);
    cr_assert_eq(crew_members_here(&crew, &identity), 2);
    crew_release(&crew);
}

Test(crew, alone_without_either)
{
    struct job_document job = {0};
    const struct identity identity = {.role = "worker"};
    struct crew crew;
    cr_assert_eq(crew_read(&job, &identity, &crew, NULL), 0);
    cr_assert_eq(crew.size, 1);
    crew_release(&crew);
}

/* The message counts the seats of the stranger's own role. Only a crew of ParameterServer has servers and evaluators. */
Test(crew, a_stranger_is_told_so)
{
    static const struct {
        enum strategy_type strategy;
        const char *role;
        int64_t index;
        const char *message;
    } strangers[] = {
        {STRATEGY_MULTI_WORKER_MIRRORED, "worker", 3, "worker 3 is no member of the crew, which has 3 of role worker"},
        {STRATEGY_MULTI_WORKER_MIRRORED, "chief", 0, "chief 0 is no member of the crew, which has 0 of role chief"},
        {STRATEGY_MULTI_WORKER_MIRRORED, "evaluator", 0,
         "evaluator 0 is no member of the crew, which has 0 of role evaluator"},
        {STRATEGY_PARAMETER_SERVER, "evaluator", 1,
         "evaluator 1 is no member of the crew, which has 1 of role evaluator"},
        {STRATEGY_PARAMETER_SERVER, "ps", 0, "ps 0 is no member of the crew, which has 0 of role ps"},
        {STRATEGY_PARAMETER_SERVER, "cook", 0, "cook 0 is no member of the crew, which has 0 of role cook"},
    };
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        struct job_document job = {.crew = digits, .strategy.type = strangers[i].strategy};
        const struct identity identity = {.role = strangers[i].role, .index = strangers[i].index};
        struct crew crew;
        struct error error = ERROR_INIT;
        cr_assert_eq(crew_read(&job, &identity, &crew, &error), -1);
        cr_expect_str_eq(error.message, strangers[i].message);
    }
}

Test(crew, too_many_seats_are_refused)
{
    struct job_document job = {.crew = digits};
    job.crew.roles[0].count = CREW_SIZE_MAX + 1;
    const struct identity identity = {.role = "worker"};
    struct crew crew;
    struct error error = ERROR_INIT;
    cr_assert_eq(crew_read(&job, &identity, &crew, &error), -1);
    cr_assert_not_null(strstr(error.message, "more than"), "%s", error.message);
}
