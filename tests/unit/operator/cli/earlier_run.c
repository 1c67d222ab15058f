/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/earlier_run.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/directory.h"
#include "common/memory.h"
#include "common/scope.h"

static char directory[] = "/tmp/cox-earlier-XXXXXX";
static char *manifest, *data, *weights;

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

/* The worker is looked for beside this test, then by its bare name: here, in the working directory. */
static void setup(void)
{
    cr_assert(mkdtemp(directory));
    cr_assert_eq(chdir(directory), 0);
    manifest = memory_format("%s/job.yaml", directory);
    data = memory_format("%s/corpus.txt", directory);
    weights = memory_format("%s/weights", directory);
    put("coxswain-worker", "program");
    put(manifest, "job");
    put(data, "data");
    put(weights, "weights");
}

static void teardown(void)
{
    directory_remove(directory);
    free(manifest);
    free(data);
    free(weights);
}

TestSuite(earlier_run, .init = setup, .fini = teardown);

static struct run_ingredients remembered(void)
{
    struct run_ingredients ingredients = {.manifest = manifest, .data = data};
    struct error error = ERROR_INIT;
    cr_assert_null(earlier_run_weights(directory, &ingredients), "nothing was run yet");
    cr_assert_eq(earlier_run_remember(directory, &ingredients, weights, &error), 0, "%s", error.message);
    return ingredients;
}

Test(earlier_run, serves_again_when_nothing_has_changed)
{
    struct run_ingredients ingredients = remembered();
    SCOPED_FREE char *found = earlier_run_weights(directory, &ingredients);
    cr_assert_str_eq(found, weights);
}

Test(earlier_run, does_not_when_anything_has)
{
    struct run_ingredients ingredients = remembered();
    char *const files[] = {manifest, data, weights};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        put(files[i], "another");
        cr_assert_null(earlier_run_weights(directory, &ingredients), "%s", files[i]);
        cr_assert_eq(earlier_run_remember(directory, &ingredients, weights, NULL), 0);
    }
    unlink(weights);
    cr_assert_null(earlier_run_weights(directory, &ingredients));
}
