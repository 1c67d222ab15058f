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

Test(unknown_field, what_is_like_no_field_stays_as_it_is)
{
    expect(false, "unknown field \"spec.elephant\"", "unknown field \"spec.elephant\"");
    expect(false, "unknown field \"metadata.nam\"", "unknown field \"metadata.nam\"");
    expect(false, "unknown field \"spec.elephant.replica\"", "unknown field \"spec.elephant.replica\"");
    expect(false, "unknown field \"spec.workers.replica",
           "unknown field \"spec.workers.replica; did you mean spec.workers.replicas?");
    expect(false, "the server is busy", "the server is busy");
}
