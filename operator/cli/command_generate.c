/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/failure_line.h"
#include "common/job/enum_words.h"
#include "common/job/string_format.h"
#include "common/job/training_sweep.h"
#include "common/memory.h"
#include "operator/cli/command.h"
#include "operator/cli/command_line.h"
#include "operator/cli/first_sweep.h"
#include "operator/cli/job_print.h"
#include "operator/cli/paths.h"

#define MANIFEST_TEXT_MAX (64 * 1024)
#define CLAIM_NAME_MAX 253
#define MESSAGE_MAX 4096

static const char usage[] =
    "usage: cox generate NAME [options]\n"
    "\n"
    "Prints the manifest of a first job of your own, with a comment on every field: change what you like and give it "
    "to\n"
    "`cox run` or `kubectl apply`. Without options it learns from data that is made from the seed and needs no "
    "volume.\n"
    "\n"
    "  --sweep              print a sweep instead: trials of that job with other learning rates, batch sizes and "
    "widths,\n"
    "                       for `cox sweep run`\n"
    "  --data FOLDER        learn from the files there, which are found by their names. It looks into NPY, IDX, CSV\n"
    "                       and JSON Lines files, texts and folders of images, so that model, batch size and held-out\n"
    "                       part fit. The claim must get the contents of the folder.\n"
    "                       A table or text is named by its path, such as iris/iris.csv, if the folder has several\n"
    "  --format FORMAT      form of the data: which files to look for; without --data, of their usual names\n"
    "  --label COLUMN       of a table: the column with the labels, its name or number (default: the last one, or one\n"
    "                       called class, label, target, y, species, outcome or survived)\n"
    "  --skip COLUMNS       of a table: columns to leave out, names or numbers with commas between them. A column "
    "with\n"
    "                       another word in each row, or with the number of the row, is left out, too\n"
    "  --drop-rows          of a table: leave out the rows in which a value is missing, in place of refusing them\n"
    "  --model MODEL        default: one that suits the data\n"
    "  --strategy STRATEGY  how the crew shares the work (default: MultiWorkerMirrored)\n"
    "  --workers N          default: the fewest that show what the strategy does\n"
    "  --gpus N             compute on so many GPUs a worker (default: on the CPU)\n"
    "  --data-claim NAME    the PersistentVolumeClaim with the data (default: " FIRST_JOB_DATA ")\n"
    "  --runs-claim NAME    the one for checkpoints and weights (default: " FIRST_JOB_RUNS
    "; of a job without files: none)\n"
    "  --image IMAGE        the worker's image (default: the operator's)\n"
    "\n";

static const char exit_codes[] = "\n"
                                 "Exit code: 0 printed, 1 the folder cannot be read or holds no training data, 2 wrong "
                                 "usage, or what no job may be.\n";

/* The words that options take. */
static const struct choice {
    const char *title;
    const char *const *words;
} choices[] = {{"FORMAT", data_format_words}, {"MODEL", preset_words}, {"STRATEGY", strategy_type_words}};

static void print_usage(void)
{
    fputs(usage, stdout);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        printf("  %-9s", choices[i].title);
        for (const char *const *word = choices[i].words; *word; word++)
            if (**word)
                printf(" %s", *word);
        puts("");
    }
    fputs(exit_codes, stdout);
}

/* ---------------------------------------------------------------- options */

struct request {
    struct first_job wish;
    struct json *skipped; /* also the wish's */
    const char *folder;   /* NULL: none */
    bool sweep;
};

static bool take_number(const char *text, int64_t *ret_number)
{
    return number_parse(text, ret_number) && *ret_number > 0;
}

static bool take_claim(const char *text, const char **ret_claim)
{
    *ret_claim = text;
    return strlen(text) <= CLAIM_NAME_MAX && string_format_matches(STRING_FORMAT_DOTTED_NAME, text);
}

/* Appends the words between commas. */
static bool take_skipped(const char *text, struct json *skipped)
{
    for (size_t length; *text; text += length + (text[length] == ',')) {
        length = strcspn(text, ",");
        SCOPED_FREE char *word = memory_copy_bytes(text, length);
        if (length == 0 || json_count(skipped) == DATA_SKIPPED_MAX)
            return false;
        json_append_string(skipped, word);
    }
    return json_count(skipped) > 0;
}

/* NULL: it is taken; else what the option takes. */
static const char *take(struct request *request, int option, const char *argument)
{
    struct first_job *wish = &request->wish;
    const char **words[128] = {['d'] = &request->folder, ['f'] = &wish->format, ['m'] = &wish->model,
                               ['s'] = &wish->strategy,  ['i'] = &wish->image,  ['l'] = &wish->label};
    const char **claims[128] = {['D'] = &wish->data_claim, ['R'] = &wish->runs_claim};
    int64_t *numbers[128] = {['w'] = &wish->workers, ['g'] = &wish->gpus};
    if (option == 'W')
        request->sweep = true;
    else if (option == 'r')
        wish->drop_rows = true;
    else if (words[option])
        *words[option] = argument;
    else if (claims[option])
        return take_claim(argument, claims[option]) ? NULL : "a claim's name: lower-case letters, digits, '-' and '.'";
    else if (option == 'S')
        return take_skipped(argument, request->skipped) ? NULL
                                                        : "names or numbers of columns, with commas between them";
    else
        return take_number(argument, numbers[option]) ? NULL : "a whole number from 1 on";
    return NULL;
}

/* Returns an exit code when the command ends here, else -1. */
static int read_options(int count, char **words, struct request *request)
{
    static const struct option known[] = {
        {"sweep", no_argument, NULL, 'W'},
        {"data", required_argument, NULL, 'd'},
        {"format", required_argument, NULL, 'f'},
        {"label", required_argument, NULL, 'l'},
        {"skip", required_argument, NULL, 'S'},
        {"drop-rows", no_argument, NULL, 'r'},
        {"model", required_argument, NULL, 'm'},
        {"strategy", required_argument, NULL, 's'},
        {"workers", required_argument, NULL, 'w'},
        {"gpus", required_argument, NULL, 'g'},
        {"data-claim", required_argument, NULL, 'D'},
        {"runs-claim", required_argument, NULL, 'R'},
        {"image", required_argument, NULL, 'i'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int position = 0;
    for (int option; (option = getopt_long(count, words, "h", known, &position)) != -1;) {
        if (option == 'h') {
            print_usage();
            return EXIT_SUCCESS;
        }
        if (option == '?')
            return command_refuse_option(words, known, usage);
        const char *wanted = take(request, option, optarg);
        if (wanted) {
            fprintf(stderr, "%s: --%s \"%s\": it takes %s\n", words[0], known[position].name, optarg, wanted);
            return EXIT_USAGE;
        }
    }
    if (optind + 1 != count) {
        fprintf(stderr, "%s: it takes one NAME, and %d are given\n", words[0], count - optind);
        return command_usage(false, usage);
    }
    request->wish.name = words[optind];
    return -1;
}

/* ---------------------------------------------------------------- what comes of them */

/* Where a field's value came from. */
static const char *option_of(const char *path)
{
    static const struct {
        const char *path, *option;
    } options[] = {
        {"metadata.name", "NAME"},
        {"spec.coxswain.strategy.type", "--strategy"},
        {"spec.coxswain.model.preset", "--model"},
        {"spec.workers.replicas", "--workers"},
        {"spec.devices.type", "--gpus"},
        {"spec.devices.count", "--gpus"},
        {"spec.coxswain.data.format", "--format"},
        {"spec.coxswain.data.labelColumn", "--label"},
        {"spec.coxswain.data.skipColumns", "--skip"},
        {"spec.coxswain.data.missing", "--drop-rows"},
        {"spec.image", "--image"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(options[i].path, path) == 0)
            return options[i].option;
    return NULL;
}

/* False, and each reason on stderr, when no job, or no sweep, may be like that. */
static bool is_allowed(const char *title, const struct json *violations)
{
    for (const struct json *item = json_first(violations); item; item = json_next(item)) {
        const char *path = json_string_at(item, "field", ""), *option = option_of(path);
        fprintf(stderr, "%s: %s%s%s%s: %s\n", title, path, option ? " (" : "", option ? option : "", option ? ")" : "",
                json_string_at(item, "message", ""));
    }
    return json_count(violations) == 0;
}

/* `sweep` NULL: a job is printed. */
static void print_head(const struct request *request, const struct json *job, const struct json *sweep, bool has_data)
{
    SCOPED_BUFFER text = BUFFER_INIT(MESSAGE_MAX);
    const char *name = request->wish.name;
    /* A line break would end the comment. */
    bool fits = request->folder && !strpbrk(request->folder, "\r\n");
    SCOPED_FREE char *folder = path_for_shell(fits ? request->folder : "FOLDER");
    printf("# A first %s, printed by cox generate. What a field means stands above it; docs/api.md and\n"
           "# `kubectl explain %s.spec` explain all fields.\n#\n",
           sweep ? "sweep" : "job", sweep ? "ts" : "tj");
    printf("#   cox %srun %s.yaml", sweep ? "sweep " : "", name);
    if (has_data)
        printf(" --volume %s=%s", request->wish.data_claim ? request->wish.data_claim : FIRST_JOB_DATA, folder);
    if (request->wish.files && request->wish.files->of_test)
        printf("\n#\n# The folder has only files to test with. This job learns from them and holds out a part of them: "
               "to compare\n"
               "# with published results, get the files to learn from, too.\n#");
    bool has_runs = json_at(job, "spec.storage") != NULL;
    printf("\n#   kubectl apply -f %s.yaml%s\n", name, has_runs ? "    (with the claims that storage names)" : "");
    if (request->wish.shape && request->wish.shape->label_reason != LABEL_NO_TABLE) {
        buffer_append_string(&text, "#\n# ", NULL);
        data_shape_describe_label(request->wish.shape, &text);
        buffer_append_string(&text, "\n", NULL);
    }
    if (sweep)
        first_sweep_explain(sweep, &text);
    else
        first_job_explain(job, &text);
    fputs(buffer_text(&text), stdout);
}

static int print_job(const char *title, const struct request *request)
{
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_TEXT_MAX);
    SCOPED_JSON *job = first_job_make(&request->wish);
    SCOPED_JSON *of_job = training_job_violations(job, NULL);
    SCOPED_JSON *sweep = request->sweep ? first_sweep_make(&request->wish, job) : NULL;
    SCOPED_JSON *of_sweep = sweep ? training_sweep_violations(sweep, NULL) : NULL;
    if (!is_allowed(title, of_job) || !is_allowed(title, of_sweep))
        return EXIT_USAGE;
    bool has_data = json_at(job, "spec.coxswain.data.storage") != NULL;
    if (request->wish.data_claim && !has_data) {
        fprintf(stderr,
                "%s: --data-claim: data of format %s is in no claim; name another --format, or a folder with --data\n",
                title, json_string_at(job, "spec.coxswain.data.format", ""));
        return EXIT_USAGE;
    }
    job_print(sweep ? sweep : job, &text);
    print_head(request, job, sweep, has_data);
    int64_t minutes = sweep ? 0 : first_job_length(job);
    if (minutes > 0)
        fprintf(stderr, "%s: training takes about %lld minutes on two processors (training.steps)\n", title,
                (long long)minutes);
    else if (minutes < 0)
        fprintf(stderr,
                "%s: a model of this size takes days on processors: give the job GPUs (--gpus N), or take --model "
                "gpt-bytes\n",
                title);
    fputs(buffer_text(&text), stdout);
    return EXIT_SUCCESS;
}

static void append_clean(const char *text, struct buffer *out)
{
    failure_line_clean(text, strlen(text), MESSAGE_MAX, out);
}

/* Says on stderr which columns from place `first` on, and before `end`, were left out, and why. */
static void print_left_out(const char *title, const struct json *skipped, size_t first, size_t end, const char *why)
{
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_TEXT_MAX);
    size_t at = 0;
    for (const struct json *item = json_first(skipped); item && at < end; item = json_next(item), at++) {
        if (at < first)
            continue;
        const char *name = json_string(item, "");
        buffer_append_string(&text, text.length > 0 ? ", " : "", NULL);
        buffer_append_string(&text, name[strspn(name, "0123456789")] == '\0' ? "column " : "", NULL);
        append_clean(name, &text);
    }
    if (text.length > 0)
        fprintf(stderr, "%s: left out, since %s: %s (data.skipColumns)\n", title, why, buffer_text(&text));
}

/* Says on stderr what the job was made for. */
static void print_found(const char *title, const struct data_files_found *found, const struct data_shape *shape)
{
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_TEXT_MAX);
    buffer_format(&text, "%s: found ", title);
    append_clean(shape->images && strcmp(found->files, DATA_FILES_HERE) == 0 ? "folders of images" : found->files,
                 &text);
    if (found->labels) {
        buffer_append_string(&text, " and ", NULL);
        append_clean(found->labels, &text);
    }
    if (shape->examples > 0) {
        buffer_append_string(&text, ": ", NULL);
        data_shape_describe(shape, &text);
        buffer_format(&text, ", %lld %s", (long long)first_job_held_out(shape),
                      shape->tested > 0 ? "more to test with" : "held out");
    }
    if (found->of_test)
        buffer_append_string(&text, "; these are files to test with, but no others are there", NULL);
    if (found->unused) {
        buffer_append_string(&text, "; only this file is used, and not ", NULL);
        append_clean(found->unused, &text);
    }
    if (shape->label_reason != LABEL_NO_TABLE) {
        buffer_format(&text, "\n%s: ", title);
        data_shape_describe_label(shape, &text);
    }
    fprintf(stderr, "%s\n", buffer_text(&text));
}

/* Says on stderr that a table without labels is not used to test with, and what it is good for. */
static void print_unlabelled(const char *title, const struct first_job *wish)
{
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_TEXT_MAX);
    SCOPED_FREE char *path = memory_format("%s/%s", wish->files->folder, wish->files->unlabelled);
    SCOPED_FREE char *shown = path_for_shell(path);
    bool is_named = *wish->shape->label_name;
    append_clean(wish->files->unlabelled, &text);
    buffer_format(&text, " has no %s%s, so a part of ", is_named ? "column " : "labels", wish->shape->label_name);
    append_clean(wish->files->files, &text);
    buffer_format(&text, " is held out instead; after training, its labels are predicted by: cox predict %s --data ",
                  wish->name);
    append_clean(shown, &text);
    fprintf(stderr, "%s: %s\n", title, buffer_text(&text));
}

static int refuse_data(const char *title, const char *message)
{
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_TEXT_MAX);
    append_clean(message, &text);
    fprintf(stderr, "%s: --data: %s\n", title, buffer_text(&text));
    return EXIT_FAILURE;
}

/* False, and the reason on stderr, when no job of that preset could learn the data. */
static bool suits_model(const char *title, const char *model, const struct data_shape *shape)
{
    const char *mlp = preset_name(PRESET_MLP), *reason = NULL;
    if (!model || shape->examples == 0 || shape->rank == 0)
        return true;
    if (shape->classes == 0)
        reason = "presets learn classes, but the labels are numbers to predict; leave out --model";
    else if (shape->rank == 1 && strcmp(model, mlp) != 0)
        reason = "an example is a row of values, which only mlp learns from";
    if (reason)
        fprintf(stderr, "%s: --model \"%s\": %s\n", title, model, reason);
    return !reason;
}

static int generate(const char *title, struct request *request)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    const struct data_columns columns = {request->wish.label, request->skipped, request->wish.drop_rows};
    size_t given = json_count(request->skipped);
    struct data_shape shape = {.examples = 0};
    struct error error = ERROR_INIT;
    const char *format = request->wish.format;
    bool known = !format || words_find(data_format_words, format) >= 0; /* which print_job judges */
    if (request->folder && known) {
        if (data_folder_look(request->folder, format, &found, &error) < 0)
            return refuse_data(title, error.message);
        request->folder = found.folder;
        request->wish.format = found.format;
        request->wish.files = &found;
        if (data_shape_read(request->folder, &found, &columns, &shape, &error) < 0)
            return refuse_data(title, error.message);
        request->wish.shape = &shape;
        if (!suits_model(title, request->wish.model, &shape))
            return EXIT_USAGE;
        print_found(title, &found, &shape);
        size_t end = json_count(request->skipped), numbers = end - shape.row_numbers;
        print_left_out(title, request->skipped, given, numbers, "each row has another word there, as identifiers have");
        print_left_out(title, request->skipped, numbers, end, "its values number the rows");
        if (found.unlabelled)
            print_unlabelled(title, &request->wish);
    }
    return print_job(title, request);
}

int command_generate(int count, char **words)
{
    SCOPED_JSON *skipped = json_new_array();
    struct request request = {.wish.skipped = skipped, .skipped = skipped};
    int code = read_options(count, words, &request);
    return code >= 0 ? code : generate(words[0], &request);
}
