/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_setting.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"

static struct json *parse(const char *text)
{
    struct json *job = NULL;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 16, &job, NULL), 0, "%s", text);
    return job;
}

static const char before[] =
    "{\"metadata\":{\"name\":\"a\"},"
    "\"spec\":{\"coxswain\":{\"training\":{\"epochs\":3,\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.1\"}}},"
    "\"parameterServers\":{\"replicas\":2,\"template\":{\"metadata\":{\"labels\":{\"a\":\"1\"}}}},"
    "\"storage\":[{\"name\":\"data\"},{\"name\":\"runs\"}]}}";

/* Applies `settings`, separated by newlines, to the job above, and expects this text at the path. */
static void check(const char *settings, const char *path, const char *expected)
{
    SCOPED_JSON *job = parse(before);
    SCOPED_BUFFER text = BUFFER_INIT(1 << 16);
    struct error error = ERROR_INIT;
    char copy[512];
    char *rest = NULL;
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
    check("spec.coxswain.training.epochs=4", "spec.coxswain.training.epochs", "4");
    check("spec.coxswain.training.optimizer.learningRate=0.01", "spec.coxswain.training.optimizer.learningRate",
          "\"0.01\"");
    check("spec.coxswain.strategy.type=Mirrored", "spec.coxswain.strategy", "{\"type\":\"Mirrored\"}");
    check("spec.coxswain.strategy.recompute=true", "spec.coxswain.strategy.recompute", "true");
    check("spec.coxswain.checkpoint.path=1", "spec.coxswain.checkpoint.path", "\"1\"");
    check("spec.coxswain.checkpoint.path=a=b", "spec.coxswain.checkpoint.path", "\"a=b\"");
    check("spec.workers.replicas={minReplicas: 1, maxReplicas: 4}", "spec.workers.replicas",
          "{\"minReplicas\":1,\"maxReplicas\":4}");
    check("metadata.labels.run=7", "metadata.labels.run", "\"7\"");
}

Test(job_setting, null_takes_away_and_makes_nothing)
{
    check("spec.coxswain.training.epochs=null\nspec.coxswain.training.steps=9", "spec.coxswain.training",
          "{\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.1\"},\"steps\":9}");
    check("spec.workers.minReplicas=null", "spec.workers.replicas", "");
    check("spec.storage[data]=null", "spec.storage", "[{\"name\":\"runs\"}]");
}

Test(job_setting, elements_by_number_and_by_name)
{
    check("spec.storage[runs].readOnly=true\nspec.storage[0].readOnly=true\nspec.storage[0].readOnly=null",
          "spec.storage", "[{\"name\":\"data\"},{\"name\":\"runs\",\"readOnly\":true}]");
    check("spec.storage[2].name=more\nspec.storage[0]={name: other}", "spec.storage",
          "[{\"name\":\"other\"},{\"name\":\"runs\"},{\"name\":\"more\"}]");
    check("spec.coxswain.model.layers[0].type=Dense\nspec.coxswain.model.layers[0].devices=[0, 1]",
          "spec.coxswain.model.layers", "[{\"type\":\"Dense\",\"devices\":[0,1]}]");
}

Test(job_setting, what_the_table_does_not_describe_goes_by_what_is_there)
{
    check("spec.parameterServers.template.metadata.labels.a=2\n"
          "spec.parameterServers.template.metadata.annotations.x\\.y/z=t\n"
          "spec.parameterServers.template.spec.containers[0].ports[0].containerPort=80",
          "spec.parameterServers",
          "{\"replicas\":2,\"template\":{\"metadata\":{\"labels\":{\"a\":\"2\"},"
          "\"annotations\":{\"x.y/z\":\"t\"}},\"spec\":{\"containers\":[{\"ports\":"
          "[{\"containerPort\":80}]}]}}}");
}

Test(job_setting, what_does_not_fit_is_refused_with_what_could_stand_there)
{
    static const struct {
        const char *setting, *words;
    } rows[] = {
        {"spec.coxswain.training.epochs", "is not PATH=VALUE"},
        {"=3", "is not PATH=VALUE"},
        {"status.step=3", "begins with spec or metadata"},
        {"spec=3", "spec cannot be set as a whole"},
        {"spec.coxswain.training.stepz=3", "there is no field stepz; did you mean steps? The fields are "},
        {"spec.coxswain.training.stepz=3", "batchSize"},
        {"spec.coxswain.training.epochs.x=3", "epochs has nothing within it"},
        {"spec.coxswain.training[0].epochs=3", "training is not a list"},
        {"spec[0]=3", "spec is not a list"},
        {"spec.storage.name=3", "storage is a list"},
        {"spec.storage[more].name=3", "there is no element [more]; the list has 2: data, runs"},
        {"spec.storage[3].name=3", "there is no element [3]"},
        {"spec.storage[99999999999999999999].name=3", "there is no element"},
        {"spec.storage[data=3", "names joined by dots"},
        {"spec..epochs=3", "names joined by dots"},
        {"spec.coxswain.training.epochs=", "one value behind ="},
        {"spec.workers.replicas={", "YAML line"},
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
    *found |= strcmp(path, "spec.coxswain.training.steps") == 0 ? 1U : 0U;
    *found |= strcmp(path, "spec.coxswain.model.layers[0].units") == 0 ? 2U : 0U;
    *found |= strcmp(path, "spec.coxswain.strategy") == 0 ? 4U : 0U;
}

Test(job_setting, all_paths_lead_to_fields)
{
    unsigned found = 0;
    job_setting_paths(look_for, &found);
    cr_expect_eq(found, 3U);
}

static void expect_in_sweep(const char *setting, const char *expected)
{
    SCOPED_JSON *sweep =
        parse("{\"kind\":\"TrainingSweep\",\"spec\":{\"parameters\":[{\"path\":\"a\",\"values\":[1,2]}]}}");
    SCOPED_BUFFER text = BUFFER_INIT(1 << 16);
    struct error error = ERROR_INIT;
    if (job_setting_apply(sweep, setting, &error) == 0) {
        cr_assert_eq(json_print(json_member(sweep, "spec"), &text, NULL), 0);
        cr_expect(strstr(buffer_text(&text), expected), "%s: %s", setting, buffer_text(&text));
    } else {
        cr_expect(strstr(error.message, expected), "%s: %s", setting, error.message);
    }
}

Test(job_setting, fields_of_a_sweep_and_of_its_template)
{
    expect_in_sweep("spec.maxTrials=3", "\"maxTrials\":3");
    expect_in_sweep("spec.algorithm={type: Grid}", "\"algorithm\":{\"type\":\"Grid\"}");
    expect_in_sweep("spec.template.coxswain.training.steps=9",
                    "\"template\":{\"coxswain\":{\"training\":{\"steps\":9}}}");
    expect_in_sweep("spec.template.coxswain.checkpoint.path=1", "\"path\":\"1\"");
    expect_in_sweep("spec.parameters[0].values[1]=0.5", "\"values\":[1,0.5]");
    expect_in_sweep("spec.parameters[0].uniform={min: 0, max: 1}", "\"uniform\":{\"min\":0,\"max\":1}");
    expect_in_sweep("spec.template.coxswain.trainnig.steps=9",
                    "there is no field trainnig; did you mean training? The fields are ");
    expect_in_sweep("spec.workers.replicas=2", "there is no field workers; the fields are suspend, template, ");
}

/* `wanted` NULL: the path is right. */
static void check_parameter(const char *path, const char *wanted)
{
    struct error error = ERROR_INIT;
    char text[512];
    snprintf(text, sizeof text,
             "{\"spec\":{\"parameters\":[{\"env\":\"A\"},{\"path\":\"%s\"}],\"template\":{\"coxswain\":{\"model\":"
             "{\"layers\":[{\"units\":1},{\"units\":2},{\"units\":3}]}},\"workers\":{\"template\":{\"spec\":"
             "{\"containers\":[{}]}}}}}}",
             path);
    SCOPED_JSON *sweep = parse(text);
    int result = job_setting_check_parameters(sweep, &error);
    cr_expect_eq(result, wanted ? -1 : 0, "%s: %s", path, error.message);
    cr_expect(!wanted || strstr(error.message, wanted), "%s: %s", path, error.message);
}

Test(job_setting, parameters_of_a_sweep_are_fields_of_a_job)
{
    check_parameter("coxswain.training.optimizer.learningRate", NULL);
    check_parameter("coxswain.model.layers.0.units", NULL);
    check_parameter("coxswain.model.layers.2.units", NULL);
    check_parameter("coxswain.model.layers.3.units",
                    "spec.parameters: path coxswain.model.layers.3.units leads nowhere: coxswain.model.layers has 3 "
                    "elements in the template, counted from 0; correct the path");
    check_parameter("workers.replicas", NULL);
    check_parameter("workers.template.spec.containers.0.image", NULL);
    check_parameter("coxswain.training.optimizer.lerningRate",
                    "spec.parameters[1].path: coxswain.training.optimizer.lerningRate: there is no field lerningRate; "
                    "did you mean learningRate? The fields are ");
    check_parameter("elephant.x", "there is no field elephant; the fields are ");
    check_parameter("coxswain.training.steps.x", "steps has nothing within it");
    check_parameter("spec.coxswain.training.steps", "a path begins within the template; write coxswain.training.steps");
    check_parameter("spec.template.coxswain.training.steps", "; write coxswain.training.steps");
    check_parameter("template.workers.replicas", "; write workers.replicas");
    check_parameter("coxswain.training", "coxswain.training is a section; name one of its fields");
    check_parameter("coxswain.model.layers.0", "is a section");
    check_parameter("coxswain.model.layers", "such as coxswain.model.layers.0");
    check_parameter("coxswain.model.layers.units",
                    "layers is a list: say which element, such as coxswain.model.layers.0");
    check_parameter("chief.template.spec.containers.0.image", "the template has no chief.template.spec.containers; ");
}

static void check_range(const char *path, const char *range, const char *wanted)
{
    struct error error = ERROR_INIT;
    SCOPED_FREE char *text = memory_format("{\"spec\":{\"parameters\":[{\"path\":\"%s\",\"%s\":{\"min\":1,\"max\":9}}],"
                                           "\"template\":{\"coxswain\":{\"model\":{\"inputShape\":[1]}}}}}",
                                           path, range);
    SCOPED_JSON *sweep = parse(text);
    cr_expect_eq(job_setting_check_parameters(sweep, &error), wanted ? -1 : 0, "%s: %s", text, error.message);
    cr_expect_str_eq(error.message, wanted ? wanted : "");
}

Test(job_setting, whole_numbers_are_drawn_as_such)
{
    check_range("coxswain.training.batchSize", "integer", NULL);
    check_range("coxswain.training.optimizer.learningRate", "logUniform", NULL);
    check_range("coxswain.training.batchSize", "uniform",
                "spec.parameters[0].path: coxswain.training.batchSize: batchSize takes whole numbers; use integer "
                "instead of uniform");
    check_range("coxswain.model.inputShape.0", "logUniform",
                "spec.parameters[0].path: coxswain.model.inputShape.0: inputShape takes whole numbers; use integer "
                "instead of logUniform");
}

static void check_ends(const char *path, const char *range, const char *wanted)
{
    struct error error = ERROR_INIT;
    SCOPED_FREE char *text =
        memory_format("{\"spec\":{\"parameters\":[{\"path\":\"%s\",%s}],\"template\":{\"coxswain\":{}}}}", path, range);
    SCOPED_JSON *sweep = parse(text);
    cr_expect_eq(job_setting_check_parameters(sweep, &error), wanted ? -1 : 0, "%s: %s", text, error.message);
    cr_expect(wanted ? strstr(error.message, wanted) != NULL : *error.message == '\0', "%s", error.message);
}

Test(job_setting, the_field_of_a_parameter_takes_the_ends_of_its_range)
{
    check_ends("coxswain.training.batchSize", "\"integer\":{\"min\":1,\"max\":64}", NULL);
    check_ends("coxswain.training.batchSize", "\"integer\":{\"min\":0,\"max\":64}",
               "spec.parameters[0].integer.min: coxswain.training.batchSize: 0 is below 1");
    check_ends("coxswain.training.optimizer.beta2", "\"uniform\":{\"min\":0.9,\"max\":1}", NULL);
    check_ends("coxswain.training.optimizer.beta2", "\"uniform\":{\"min\":0.9,\"max\":2}",
               "spec.parameters[0].uniform.max: coxswain.training.optimizer.beta2: ");
    check_ends("coxswain.training.optimizer.learningRate", "\"logUniform\":{\"min\":1,\"max\":1e6}",
               "spec.parameters[0].logUniform.max: coxswain.training.optimizer.learningRate: ");
}

static void check_values(const char *path, const char *values, const char *wanted)
{
    struct error error = ERROR_INIT;
    SCOPED_FREE char *text = memory_format("{\"spec\":{\"parameters\":[{\"path\":\"%s\",\"values\":[%s]}],\"template\":"
                                           "{\"coxswain\":{\"model\":{\"inputShape\":[1]}},\"workers\":{\"template\":"
                                           "{\"spec\":{\"containers\":[{}]}}}}}}",
                                           path, values);
    SCOPED_JSON *sweep = parse(text);
    cr_expect_eq(job_setting_check_parameters(sweep, &error), wanted ? -1 : 0, "%s: %s", text, error.message);
    cr_expect_str_eq(error.message, wanted ? wanted : "", "%s", error.message);
}

Test(job_setting, the_field_of_a_parameter_takes_each_of_its_values)
{
    check_values("coxswain.training.batchSize", "8, 16", NULL);
    check_values(
        "coxswain.training.batchSize", "8, 16, \"x\"",
        "spec.parameters[0].values[2]: coxswain.training.batchSize: the value is of type string; give a whole number");
    check_values("coxswain.training.optimizer.learningRate", "0.1, \"0.01\"", NULL);
    check_values("coxswain.training.optimizer.learningRate", "0.1, \"abc\"",
                 "spec.parameters[0].values[1]: coxswain.training.optimizer.learningRate: 'abc' does not fit; give "
                 "a number, such as 0.01 or 3e-4");
    check_values("coxswain.model.preset", "\"mlp\", \"lenet\"", NULL);
    check_values(
        "coxswain.model.inputShape.0", "1, 0",
        "spec.parameters[0].values[1]: coxswain.model.inputShape.0: 0 is below 1; give a number from 1 to 1048576");
    check_values("workers.template.spec.containers.0.image", "1, true, \"a\"", NULL);
}
