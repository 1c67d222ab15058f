/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_setting.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct json *parse(const char *text)
{
    struct json *job = NULL;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 16, &job, NULL), 0, "%s", text);
    return job;
}

static const char before[] =
    "{\"metadata\":{\"name\":\"a\"},"
    "\"spec\":{\"training\":{\"epochs\":3,\"optimizer\":{\"type\":\"sgd\",\"learningRate\":\"0.1\"}},"
    "\"roles\":[{\"name\":\"ps\",\"count\":2,\"template\":{\"metadata\":{\"labels\":{\"a\":\"1\"}}}},"
    "{\"name\":\"evaluator\"}]}}";

/* What `settings`, one behind the other with newlines between, make of the job above: its text. */
static void check(const char *settings, const char *path, const char *expected)
{
    SCOPED_JSON *job = parse(before);
    SCOPED_BUFFER text;
    struct error error = ERROR_INIT;
    char copy[512];
    char *rest = NULL;
    buffer_init(&text, 1 << 16);
    snprintf(copy, sizeof copy, "%s", settings);
    for (char *one = strtok_r(copy, "\n", &rest); one; one = strtok_r(NULL, "\n", &rest))
        cr_assert_eq(job_setting_apply(job, one, &error), 0, "%s: %s", one, error.message);
    const struct json *value = json_at(job, path);
    if (value)
        cr_assert_eq(json_print(value, &text, NULL), 0);
    cr_expect_str_eq(buffer_text(&text), expected, "%s: %s", settings, buffer_text(&text));
}

Test(job_setting, values_are_of_the_kind_that_the_field_takes)
{
    check("spec.training.epochs=4", "spec.training.epochs", "4");
    check("spec.training.optimizer.learningRate=0.01", "spec.training.optimizer.learningRate", "\"0.01\"");
    check("spec.strategy.type=Mirrored", "spec.strategy", "{\"type\":\"Mirrored\"}");
    check("spec.strategy.recompute=true", "spec.strategy.recompute", "true");
    check("spec.checkpoint.path=1", "spec.checkpoint.path", "\"1\"");
    check("spec.checkpoint.path=a=b", "spec.checkpoint.path", "\"a=b\"");
    check("spec.elastic={minWorkers: 1, maxWorkers: 4}", "spec.elastic", "{\"minWorkers\":1,\"maxWorkers\":4}");
    check("metadata.labels.run=7", "metadata.labels.run", "\"7\"");
}

Test(job_setting, null_takes_away_and_makes_nothing)
{
    check("spec.training.epochs=null\nspec.training.steps=9", "spec.training",
          "{\"optimizer\":{\"type\":\"sgd\",\"learningRate\":\"0.1\"},\"steps\":9}");
    check("spec.elastic.minWorkers=null", "spec.elastic", "");
    check("spec.roles[ps]=null", "spec.roles", "[{\"name\":\"evaluator\"}]");
}

Test(job_setting, elements_by_number_and_by_name)
{
    check("spec.roles[evaluator].count=1\nspec.roles[0].count=3\nspec.roles[0].template=null", "spec.roles",
          "[{\"name\":\"ps\",\"count\":3},{\"name\":\"evaluator\",\"count\":1}]");
    check("spec.roles[2].name=chief\nspec.roles[0]={name: ps}", "spec.roles",
          "[{\"name\":\"ps\"},{\"name\":\"evaluator\"},{\"name\":\"chief\"}]");
    check("spec.model.layers[0].type=dense\nspec.model.layers[0].devices=[0, 1]", "spec.model.layers",
          "[{\"type\":\"dense\",\"devices\":[0,1]}]");
}

Test(job_setting, what_the_table_does_not_describe_goes_by_what_is_there)
{
    check("spec.roles[ps].template.metadata.labels.a=2\n"
          "spec.roles[ps].template.metadata.annotations.x\\.y/z=t\n"
          "spec.roles[ps].template.spec.containers[0].ports[0].containerPort=80",
          "spec.roles",
          "[{\"name\":\"ps\",\"count\":2,\"template\":{\"metadata\":{\"labels\":{\"a\":\"2\"},"
          "\"annotations\":{\"x.y/z\":\"t\"}},\"spec\":{\"containers\":[{\"ports\":"
          "[{\"containerPort\":80}]}]}}},{\"name\":\"evaluator\"}]");
}

Test(job_setting, what_does_not_fit_is_refused_with_what_could_stand_there)
{
    static const struct {
        const char *setting, *words;
    } rows[] = {
        {"spec.training.epochs", "is not PATH=VALUE"},
        {"=3", "is not PATH=VALUE"},
        {"status.step=3", "begins with spec or metadata"},
        {"spec=3", "spec as a whole"},
        {"spec.training.stepz=3", "there is no stepz; there are "},
        {"spec.training.stepz=3", "batchSize"},
        {"spec.training.epochs.x=3", "epochs has nothing within it"},
        {"spec.training[0].epochs=3", "training is no list"},
        {"spec[0]=3", "spec is no list"},
        {"spec.roles.count=3", "roles is a list"},
        {"spec.roles[worker].count=3", "there is no element [worker]; the list has 2: ps, evaluator"},
        {"spec.roles[3].count=3", "there is no element [3]"},
        {"spec.roles[99999999999999999999].count=3", "there is no element"},
        {"spec.roles[ps=3", "names joined by dots"},
        {"spec..epochs=3", "names joined by dots"},
        {"spec.training.epochs=", "one value behind ="},
        {"spec.elastic={", "YAML line"},
        {"metadata.name.x=1", "name in the manifest is of type string"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_JSON *job = parse(before);
        struct error error = ERROR_INIT;
        cr_expect_lt(job_setting_apply(job, rows[i].setting, &error), 0, "%s", rows[i].setting);
        cr_expect(strstr(error.message, rows[i].words), "%s: %s", rows[i].setting, error.message);
    }
}

static void look_for(void *context, const char *path)
{
    unsigned *found = context;
    *found |= strcmp(path, "spec.training.steps") == 0 ? 1U : 0U;
    *found |= strcmp(path, "spec.model.layers[0].units") == 0 ? 2U : 0U;
    *found |= strcmp(path, "spec.strategy") == 0 ? 4U : 0U;
}

Test(job_setting, all_paths_lead_to_fields)
{
    unsigned found = 0;
    job_setting_paths(look_for, &found);
    cr_expect_eq(found, 3U);
}
