/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_print.h"

#include <criterion/criterion.h>
#include <string.h>

static void check(const char *text, const char *expected)
{
    SCOPED_JSON *job = NULL;
    SCOPED_BUFFER out = BUFFER_INIT(1 << 16);
    cr_assert_eq(json_parse(text, strlen(text), 1 << 16, &job, NULL), 0, "%s", text);
    job_print(job, &out);
    cr_expect_str_eq(buffer_text(&out), expected, "%s", buffer_text(&out));
}

Test(job_print, a_field_stands_below_what_the_table_says_of_it)
{
    check("{\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"1e3\"},\"spec\":{\"devices\":{\"count\":2}}}",
          "kind: TrainingJob\n"
          "metadata:\n"
          "  name: \"1e3\"\n"
          "spec:\n"
          "  # The devices of each worker.\n"
          "  devices:\n"
          "    # Devices of each worker; an evaluator has one, servers and a chief of theirs none. For CPU these are\n"
          "    # logical devices that share the pod's cores.\n"
          "    count: 2\n");
}

#define COXSWAIN                                                                                                       \
    "spec:\n"                                                                                                          \
    "  # Training by our own worker. Exactly one of coxswain, pytorch, tensorflow and jax is given.\n"                 \
    "  coxswain:\n"

Test(job_print, a_word_gets_its_description)
{
    check("{\"spec\":{\"coxswain\":{\"strategy\":{\"type\":\"Mirrored\"}}}}",
          COXSWAIN "    # The strategy by which the workers share the training.\n"
                   "    strategy:\n"
                   "      # Mirrored: one worker with a mirror of the model on each of its devices.\n"
                   "      type: Mirrored\n");
    check("{\"spec\":{\"coxswain\":{\"strategy\":{\"type\":\"Pipeline\"}}}}",
          COXSWAIN "    # The strategy by which the workers share the training.\n"
                   "    strategy:\n"
                   "      # Pipeline: layers on different devices or pods.\n"
                   "      type: Pipeline\n");
}

/* The description explains each word by itself; the empty word stands for a field that is left out, and has no sentence. */
Test(job_print, a_word_of_those_that_may_be_left_out, .timeout = 120)
{
    check("{\"spec\":{\"coxswain\":{\"strategy\":{\"mode\":\"BoundedStaleness\"}}}}", COXSWAIN
          "    # The strategy by which the workers share the training.\n"
          "    strategy:\n"
          "      # BoundedStaleness: as Async, but no worker is more than staleness batches ahead of the slowest.\n"
          "      mode: BoundedStaleness\n");
}

Test(job_print, the_first_element_explains_the_others)
{
    check("{\"spec\":{\"storage\":[{\"name\":\"a\",\"emptyDir\":{}},{\"name\":\"b\",\"emptyDir\":{}}]}}",
          "spec:\n"
          "  # Named volumes that every pod of the job mounts. Each has exactly one source.\n"
          "  storage:\n"
          "    # Name by which data, checkpoint, export and init refer to it; mounted at /coxswain/storage/<name>.\n"
          "    - name: a\n"
          "      # A folder that lives as long as the pod, as in a pod's volumes.\n"
          "      emptyDir: {}\n"
          "    - name: b\n"
          "      emptyDir: {}\n");
}

Test(job_print, long_comments_are_broken_between_words)
{
    check("{\"spec\":{\"coxswain\":{\"model\":{\"inputShape\":[28,28,1]}}}}",
          COXSWAIN "    # The model to train.\n"
                   "    model:\n"
                   "      # Shape of one example without the batch: height, width, channels; or the length of a vector "
                   "or a text.\n"
                   "      # Presets have their own.\n"
                   "      inputShape: [28, 28, 1]\n");
}
