/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/unknown_field.h"

#include <criterion/criterion.h>

static void expect(bool is_sweep, const char *refusal, const char *wanted)
{
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_INVALID, "%s", refusal);
    unknown_field_explain(is_sweep, &error);
    cr_expect_str_eq(error.message, wanted);
}

Test(unknown_field, the_field_that_was_meant_is_named)
{
    expect(
        false, "strict decoding error: unknown field \"spec.workers.replica\", unknown field \"spec.storage[1].nam\"",
        "strict decoding error: unknown field \"spec.workers.replica\", unknown field \"spec.storage[1].nam\"; did you "
        "mean spec.workers.replicas, spec.storage[1].name?");
    expect(true, "unknown field \"spec.template.coxswain.training.batchsize\"",
           "unknown field \"spec.template.coxswain.training.batchsize\"; did you mean "
           "spec.template.coxswain.training.batchSize?");
}

Test(unknown_field, the_word_that_was_meant_is_named)
{
    expect(false,
           "[spec.a: Unsupported value: \"mirored\": supported values: \"OneDevice\", \"Mirrored\", spec.b: "
           "Unsupported value: "
           "\"desne\": supported values: \"Dense\", \"Conv2D\"]",
           "[spec.a: Unsupported value: \"mirored\" (did you mean \"Mirrored\"?): supported values: \"OneDevice\", "
           "\"Mirrored\", spec.b: Unsupported value: \"desne\" (did you mean \"Dense\"?): supported values: \"Dense\", "
           "\"Conv2D\"]");
    expect(false, "Unsupported value: \"elephant\": supported values: \"Dense\"",
           "Unsupported value: \"elephant\": supported values: \"Dense\"");
    expect(false, "Unsupported value: \"Desne\": supported values: \"Dense",
           "Unsupported value: \"Desne\": supported values: \"Dense");
    expect(false, "Unsupported value: 3: supported values: \"Dense\"",
           "Unsupported value: 3: supported values: \"Dense\"");
}

Test(unknown_field, what_stops_trials_early_is_no_algorithm)
{
    expect(
        true, "spec.algorithm.type: Unsupported value: \"ASHA\": supported values: \"Grid\"",
        "spec.algorithm.type: Unsupported value: \"ASHA\": supported values: \"Grid\"; ASHA stops trials early: give "
        "it as spec.earlyStopping.type, beside any algorithm but PBT");
    expect(true, "spec.algorithm.type: Unsupported value: \"Bayes\": supported values: \"Grid\"",
           "spec.algorithm.type: Unsupported value: \"Bayes\": supported values: \"Grid\"");
}

Test(unknown_field, what_is_like_none_is_told_with_those_that_there_are)
{
    expect(true, "unknown field \"spec.template.coxswain.evaluation.loss\"",
           "unknown field \"spec.template.coxswain.evaluation.loss\"; did you mean spec.template.coxswain.model.loss? "
           "The fields of spec.template.coxswain.evaluation are everySteps");
    expect(false, "unknown field \"spec.coxswain.encryption.elephant\"",
           "unknown field \"spec.coxswain.encryption.elephant\"; the fields of spec.coxswain.encryption are type");
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_INVALID, "unknown field \"spec.coxswain.model.layers[0].activation\"");
    unknown_field_explain(false, &error);
    cr_expect(strstr(error.message, "\"; an activation is a layer of its own, such as {type: ReLU}; the fields of "
                                    "spec.coxswain.model.layers[0] are name, type, "),
              "%s", error.message);
}

Test(unknown_field, what_is_like_no_field_stays_as_it_is)
{
    expect(false, "unknown field \"metadata.nam\"", "unknown field \"metadata.nam\"");
    expect(false, "unknown field \"spec.elephant.replica\"", "unknown field \"spec.elephant.replica\"");
    expect(false, "unknown field \"spec.workers.replica",
           "unknown field \"spec.workers.replica; did you mean spec.workers.replicas?");
    expect(false, "the server is busy", "the server is busy");
}

Test(unknown_field, a_refusal_says_each_thing_once)
{
    static const char *const rows[][2] = {
        {"TrainingJob a: TrainingJob.coxswain.dev \"a\" is invalid: spec.workers.replicas: Invalid value: 0: "
         "spec.workers.replicas in body should be greater than or equal to 1",
         "TrainingJob a: spec.workers.replicas: 0 should be greater than or equal to 1"},
        {"TrainingJob.coxswain.dev \"a\" is invalid: spec.b: Invalid value: may change only once",
         "a: spec.b: may change only once"},
        {"TrainingJob a: TrainingJob.coxswain.dev \"a\" is invalid: [spec.b: Invalid value: \"string\": spec.b in body "
         "must be of type integer: \"string\", spec.c: Invalid value: \"x y\": spec.c in body should match '^a$', "
         "spec.d: Required value, spec: Invalid value: \"object\": one of b and c]",
         "TrainingJob a: [spec.b: must be of type integer, written without quotes, not text, spec.c: \"x y\" "
         "should "
         "match '^a$', spec.d is missing; add it, spec: one of b and c]"},
        {"TrainingSweep a: TrainingSweep.coxswain.dev \"a\" is invalid: [spec.p[0].min: Invalid value: 0: "
         "spec.p[0].min in body should be greater than 0, spec.a: Invalid value: \"string\": spec.a in body must be of "
         "type object: \"string\", spec.b: Required value: c is given, spec.c: Required value]",
         "TrainingSweep a: [spec.p[0].min: 0 should be greater than 0, spec.a: must be of type object, not \"string\", "
         "spec.b: Required value: c is given, spec.c is missing; add it]"},
        {"TrainingJob a: TrainingJob in version \"v1beta1\" cannot be handled as a TrainingJob: strict decoding error: "
         "unknown field \"spec.x\"",
         "TrainingJob a: unknown field \"spec.x\""},
        {"ConfigMap b: ConfigMap \"b\" is invalid: data: Invalid value: 3", "ConfigMap b: data: 3"},
        {"TrainingJob b: TrainingJob.coxswain.dev \"a\" is invalid: spec", "TrainingJob b: a: spec"},
        {"strict decoding error: ", ""},
        {"TrainingJob a: TrainingJob.coxswain.dev \"a\" is invalid: [spec.b: Invalid value: \"abc\": spec.b in body "
         "should match '^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?$', spec.c: Invalid value: \"\": spec.c in "
         "body "
         "should match '^x$']",
         "TrainingJob a: [spec.b: \"abc\" should be a number, such as 0.01 or 3e-4, spec.c: \"\" should match '^x$']"},
        {"TrainingSweep A_1: TrainingSweep.coxswain.dev \"A_1\" is invalid: metadata.name: Invalid value: \"A_1\": a "
         "lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
         "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
         "TrainingSweep A_1: metadata.name: \"A_1\": write lower-case letters, digits and '-' only, with a letter "
         "first "
         "and a letter or digit last"},
        {"a lowercase RFC 1123 label that is cut off", "a lowercase RFC 1123 label that is cut off"},
        {"\" is invalid: a", "\" is invalid: a"},
        {": Invalid value: : in body must be of type ", ": : in body must be of type "},
        {"admission webhook \"p\" denied the request: no", "admission webhook \"p\" denied the request: no"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = ERROR_INIT;
        error_set(&error, ERROR_INVALID, "%s", rows[i][0]);
        error.http_status = 422;
        refusal_shorten(&error);
        cr_expect_str_eq(error.message, rows[i][1], "%s", error.message);
        cr_expect_eq(error.http_status, 422);
    }
}
