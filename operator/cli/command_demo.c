/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/directory.h"
#include "common/memory.h"
#include "operator/cli/command.h"
#include "operator/cli/demo_example.h"
#include "operator/cli/earlier_run.h"
#include "operator/cli/paths.h"
#include "operator/cli/run.h"
#include "operator/cli/run_list.h"
#include "operator/cli/sha256.h"

static const char usage[] =
    "usage: cox demo [--preempt[=worker|chief]]\n"
    "\n"
    "Trains a model of handwritten digits with two workers on this machine, and shows its accuracy. If the digits "
    "cannot\n"
    "be downloaded, trains a language model on this project's own text instead.\n"
    "\n"
    "  --preempt            kill a worker half-way, measure the delay, and compare the weights with those\n"
    "                       of an undisturbed run (an earlier one of the same job, data and program, if there is one)\n"
    "  --preempt=chief      the same with worker 0, which leads the crew\n"
    "\n"
    "Environment:\n"
    "  COXSWAIN_DATA        directory with mnist/t10k-images-idx3-ubyte.gz and mnist/t10k-labels-idx1-ubyte.gz;\n"
    "                       otherwise they are downloaded once (1.6 MB) into ~/.cache/coxswain/data\n"
    "  COXSWAIN_MIRROR      URL to download them from, instead of the known mirrors\n"
    "  XDG_STATE_HOME       where runs are kept: below coxswain/demo (default: ~/.local/state)\n"
    "  NO_COLOR             no colours\n"
    "\n"
    "Exit code: 0 done (with --preempt: and both runs have the same weights, bit for bit), 1 failed, 130 "
    "interrupted.\n";

struct demo {
    struct event_loop *loop;
    struct terminal terminal;
    struct demo_example example;
    char *state; /* below it: one directory a run */
    bool interrupted;
};

static void demo_release(struct demo *demo)
{
    demo_example_release(&demo->example);
    free(demo->state);
    if (demo->loop)
        event_loop_free(demo->loop);
}

static void interrupted(void *context, int signal_number)
{
    (void)signal_number;
    ((struct demo *)context)->interrupted = true;
}

/* ---------------------------------------------------------------- runs */

static char *state_of(const struct demo *demo, const char *name)
{
    return memory_format("%s/%s", demo->state, name);
}

static char *resume_command(const struct demo *demo, const char *state)
{
    SCOPED_FREE char *program = path_for_shell(path_of_this_program());
    SCOPED_FREE char *manifest = path_for_shell(demo->example.manifest);
    SCOPED_FREE char *place = path_for_shell(state);
    SCOPED_FREE char *volume = path_for_shell(demo->example.volume);
    return memory_format("%s run %s --state %s --volume %s", program, manifest, place, volume);
}

static int run_once(struct demo *demo, const char *name, enum preemption_target preempt, struct run_outcome *outcome,
                    struct error *error)
{
    SCOPED_FREE char *state = state_of(demo, name);
    SCOPED_FREE char *resume = resume_command(demo, state);
    struct run_options options = {.manifest = demo->example.manifest,
                                  .volumes = {demo->example.volume},
                                  .volume_count = 1,
                                  .state = state,
                                  .fresh = true,
                                  .delete_volumes = true,
                                  .quiet = true,
                                  .preempt = preempt,
                                  .resume = resume,
                                  .again = resume};
    return run_job(&options, demo->loop, &demo->terminal, outcome, error);
}

static struct run_ingredients ingredients_of(const struct demo *demo)
{
    return (struct run_ingredients){.manifest = demo->example.manifest, .data = demo->example.data};
}

static int run_undisturbed(struct demo *demo, struct run_outcome *outcome, struct error *error)
{
    if (run_once(demo, "undisturbed", PREEMPT_NOBODY, outcome, error) < 0)
        return -1;
    if (!outcome->succeeded || !outcome->weights)
        return 0;
    SCOPED_FREE char *state = state_of(demo, "undisturbed");
    struct run_ingredients ingredients = ingredients_of(demo);
    return earlier_run_remember(state, &ingredients, outcome->weights, error);
}

static int exit_code(const struct run_outcome *outcome)
{
    return outcome->interrupted ? EXIT_INTERRUPTED : outcome->succeeded ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---------------------------------------------------------------- undisturbed */

static int demo_plain(struct demo *demo, struct error *error)
{
    SCOPED(run_outcome_release) struct run_outcome outcome = {.succeeded = false};
    if (run_undisturbed(demo, &outcome, error) < 0)
        return -1;
    SCOPED_FREE char *program = path_for_shell(path_of_this_program());
    SCOPED_FREE char *next =
        getenv("MAKELEVEL") ? memory_copy_string("make run DEMO=preempt") : memory_format("%s demo --preempt", program);
    if (outcome.succeeded)
        printf("\nNext: see what it costs when a worker is killed half-way:\n  %s\n", next);
    return exit_code(&outcome);
}

/* ---------------------------------------------------------------- preempted */

/* The weights to compare with; NULL with `outcome` telling why there are none. */
static int undisturbed_weights(struct demo *demo, struct run_outcome *outcome, char **ret_weights, struct error *error)
{
    SCOPED_FREE char *state = state_of(demo, "undisturbed");
    struct run_ingredients ingredients = ingredients_of(demo);
    *ret_weights = earlier_run_weights(state, &ingredients);
    if (*ret_weights) {
        SCOPED_FREE char *shown = path_for_people(state);
        printf("An earlier, undisturbed run of the same job, data and program is there to compare with (%s).\n"
               "Now the same again, and half-way a worker is killed.\n\n",
               shown);
        return 0;
    }
    puts("First an undisturbed run, to compare with; then the same again, and half-way a worker is killed.\n");
    if (run_undisturbed(demo, outcome, error) < 0)
        return -1;
    if (outcome->succeeded)
        *ret_weights = memory_copy_string(outcome->weights);
    puts("");
    return 0;
}

static int compare(const char *undisturbed, const char *preempted, struct error *error)
{
    char left[DIGEST_TEXT_MAX], right[DIGEST_TEXT_MAX];
    if (digest_file(undisturbed, DIGEST_SHA256, left, error) < 0 ||
        digest_file(preempted, DIGEST_SHA256, right, error) < 0)
        return -1;
    bool same = strcmp(left, right) == 0;
    printf("\nSHA-256 of the exported weights\n  undisturbed  %s\n  preempted    %s\n%s\n", left, right,
           same ? "The same, bit for bit." : "They differ.");
    return same ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void say_loss(const struct run_outcome *outcome, enum preemption_target target)
{
    if (outcome->killed_at_step < 0) {
        puts("\nThe job was over before a worker could be killed.");
        return;
    }
    printf("\nKilled after step %lld. ", (long long)outcome->killed_at_step);
    if (!isfinite(outcome->seconds_to_next_step)) {
        puts("The crew did not say when it went on.");
        return;
    }
    /* A new chief cannot know what its predecessor had begun; it tells where the crew went on. */
    const char *what = target == PREEMPT_CHIEF ? "finished step" : "step";
    printf("The crew's next step was done %.2f s later;\n%lld %s%s had to be made again.\n",
           outcome->seconds_to_next_step, (long long)outcome->repeated_steps, what,
           outcome->repeated_steps == 1 ? "" : "s");
}

static int demo_preempt(struct demo *demo, enum preemption_target target, struct error *error)
{
    SCOPED(run_outcome_release) struct run_outcome undisturbed = {.succeeded = false};
    SCOPED(run_outcome_release) struct run_outcome preempted = {.succeeded = false};
    SCOPED_FREE char *weights = NULL;
    if (undisturbed_weights(demo, &undisturbed, &weights, error) < 0)
        return -1;
    if (!weights)
        return exit_code(&undisturbed);
    if (run_once(demo, "preempted", target, &preempted, error) < 0)
        return -1;
    if (!preempted.succeeded)
        return exit_code(&preempted);
    say_loss(&preempted, target);
    return compare(weights, preempted.weights, error);
}

/* ---------------------------------------------------------------- start */

static int demo_run(struct demo *demo, enum preemption_target preempt, struct error *error)
{
    SCOPED_FREE char *base = run_list_folder();
    demo->state = memory_format("%s/" RUN_DEMO_FOLDER, base);
    SCOPED_FREE char *text = state_of(demo, "text");
    if (event_loop_new(&demo->loop, error) < 0 ||
        event_loop_on_signal(demo->loop, SIGINT, interrupted, demo, error) < 0 ||
        event_loop_on_signal(demo->loop, SIGTERM, interrupted, demo, error) < 0 ||
        directory_make(demo->state, error) < 0 ||
        demo_example_choose(&demo->example, text, demo->loop, &demo->terminal, &demo->interrupted, error) < 0)
        return -1;
    printf("Two workers train on %s.\n\n", demo->example.title);
    fflush(stdout);
    return preempt == PREEMPT_NOBODY ? demo_plain(demo, error) : demo_preempt(demo, preempt, error);
}

/* Returns an exit code when the command ends here, else -1. */
static int read_options(int count, char **words, enum preemption_target *preempt)
{
    static const struct option known[] = {
        {"preempt", optional_argument, NULL, 'p'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(count, words, "", known, NULL)) != -1;) {
        if (option == 'p' && (!optarg || strcmp(optarg, "worker") == 0))
            *preempt = PREEMPT_WORKER;
        else if (option == 'p' && strcmp(optarg, "chief") == 0)
            *preempt = PREEMPT_CHIEF;
        else
            return option == '?' ? command_refuse_option(words, known, usage) : command_usage(option == 'h', usage);
    }
    return optind < count ? command_usage(false, usage) : -1;
}

int command_demo(int count, char **words)
{
    enum preemption_target preempt = PREEMPT_NOBODY;
    int code = read_options(count, words, &preempt);
    if (code >= 0)
        return code;
    SCOPED(demo_release) struct demo demo = {.loop = NULL};
    struct error error = ERROR_INIT;
    terminal_init(&demo.terminal);
    code = demo_run(&demo, preempt, &error);
    if (code >= 0)
        return code;
    fprintf(stderr, "cox demo: %s\n", error.message);
    return error.kind == ERROR_CANCELLED ? EXIT_INTERRUPTED : EXIT_FAILURE;
}
