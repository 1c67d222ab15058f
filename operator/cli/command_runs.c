/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/state_directory.h"
#include "common/directory.h"
#include "common/failure_line.h"
#include "common/memory.h"
#include "operator/cli/command.h"
#include "operator/cli/command_line.h"
#include "operator/cli/earlier_files.h"
#include "operator/cli/paths.h"
#include "operator/cli/run_mark.h"
#include "operator/cli/run_print.h"

#define ANSWER_MAX 64
#define VOLUMES_TEXT_MAX 4096

static const char usage[] =
    "usage: cox runs [options] | delete NAME… | prune [options] | compare NAME NAME\n"
    "\n"
    "Lists, compares and deletes the state directories that `cox run` and `cox demo` have left on this machine. A run\n"
    "is named by its job or by its directory.\n"
    "\n"
    "  delete NAME…           deletes the directories of runs, with checkpoints and weights in them\n"
    "  prune                  deletes those of finished, interrupted and suspended runs that --older-than or --keep\n"
    "                         selects\n"
    "  compare NAME NAME      shows the fields in which two manifests differ, and the scores\n"
    "\n"
    "  --state DIR            a folder of state directories, or one (default: ~/.local/state/coxswain)\n"
    "  -o, --output FORM      the list: wide (with directories), json or name\n"
    "  --older-than TIME      prune: runs that ended longer ago than that, such as 12h or 7d\n"
    "  --keep N               prune: not the N that ended last\n"
    "  --yes                  delete, prune: do not ask\n"
    "\n"
    "Never deleted: directories given by --volume, runs that still run, and runs whose files another run uses.\n"
    "\n"
    "Exit code: 0 done, 1 there is no such run, or it could not be deleted, or was not confirmed, 2 wrong usage.\n";

struct request {
    const char *state;
    enum output_form output;
    int64_t older_than_ms, keep; /* -1: not given */
    bool yes;
    char **names;
    int name_count;
    const struct run_list *others; /* delete, prune: the runs of the default folder where --state names another */
};

/* The text for a terminal, which might obey control characters in it. Free it with free(). */
static char *printable(const char *text)
{
    struct buffer line = BUFFER_INIT(VOLUMES_TEXT_MAX);
    failure_line_clean(text, strlen(text), VOLUMES_TEXT_MAX - 1, &line);
    return buffer_take(&line);
}

/* ---------------------------------------------------------------- list */

static int64_t *measure(const struct run_list *list)
{
    int64_t *bytes = memory_allocate(list->count + 1, sizeof *bytes);
    for (size_t i = 0; i < list->count; i++)
        bytes[i] = directory_bytes(list->entries[i].directory);
    return bytes;
}

static void print_names(const struct run_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!list->entries[i].trouble)
            puts(list->entries[i].label);
}

static int print_json(const struct run_list *list, const int64_t *bytes, struct error *error)
{
    SCOPED_JSON *rows = run_list_json(list, bytes);
    SCOPED_BUFFER text = BUFFER_INIT(RUN_PRINT_MAX);
    if (json_print_indented(rows, &text, error) < 0)
        return -1;
    puts(buffer_text(&text));
    return 0;
}

/* Returns how many there are. */
static size_t tell_troubles(const struct run_list *list, const char *title)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!list->entries[i].trouble)
            continue;
        SCOPED_FREE char *trouble = printable(list->entries[i].trouble);
        fprintf(stderr, "%s: %s\n", title, trouble);
        count++;
    }
    return count;
}

static int list_runs(const char *title, const struct request *request, const struct run_list *list, struct error *error)
{
    if (request->output == OUTPUT_NAME) {
        print_names(list);
        return EXIT_SUCCESS;
    }
    SCOPED_FREE int64_t *bytes = measure(list);
    SCOPED_BUFFER text = BUFFER_INIT(RUN_PRINT_MAX);
    if (request->output == OUTPUT_JSON)
        return print_json(list, bytes, error);
    if (tell_troubles(list, title) == list->count) {
        SCOPED_FREE char *folder = request->state ? memory_copy_string(request->state) : run_list_folder();
        SCOPED_FREE char *shown = path_for_people(folder);
        fprintf(stderr, "no runs in %s\n", shown);
        return EXIT_SUCCESS;
    }
    run_print_table(list, bytes, request->output == OUTPUT_WIDE, clock_now_ms(), &text);
    fputs(buffer_text(&text), stdout);
    return EXIT_SUCCESS;
}

/* ---------------------------------------------------------------- delete */

/* Returns what names the run that was given a directory of `entry`, or NULL. Free it with free(). */
static char *user_of(const struct request *request, const struct run_list *list, const struct run_entry *entry)
{
    char *user = run_list_user_of(list, entry);
    if (!user)
        user = run_list_user_of(request->others, entry);
    if (!user)
        user = run_mark_user(entry->directory);
    return user;
}

/* False: it stays, which is told. */
static bool may_go(const char *title, const struct request *request, const struct run_list *list,
                   const struct run_entry *entry)
{
    SCOPED_FREE char *user = user_of(request, list, entry);
    SCOPED_FREE char *shown_user = printable(user ? user : "");
    SCOPED_FREE char *label = printable(entry->label);
    if (entry->in_use)
        fprintf(stderr, "%s: %s stays: it is in use; end `cox run` or `cox ui` first\n", title, label);
    else if (user)
        fprintf(stderr, "%s: %s stays: the run %s was given a directory in it by --volume\n", title, label, shown_user);
    return !entry->in_use && !user;
}

static void print_victim(const struct run_entry *entry, int64_t bytes)
{
    SCOPED_BUFFER size = BUFFER_INIT(ANSWER_MAX), volumes = BUFFER_INIT(VOLUMES_TEXT_MAX);
    SCOPED_FREE char *path = path_for_people(entry->directory);
    SCOPED_FREE char *shown = printable(path);
    SCOPED_FREE char *label = printable(entry->label);
    run_print_bytes(bytes, &size);
    earlier_volumes(entry->directory, &volumes);
    SCOPED_FREE char *shown_volumes = printable(buffer_text(&volumes));
    printf("%s  %s  %s  %s%s%s\n", label, run_state_word(entry->record.state), buffer_text(&size), shown,
           volumes.length > 0 ? ", with the volumes " : "", shown_volumes);
}

static bool is_confirmed(const char *title, const struct request *request)
{
    char answer[ANSWER_MAX] = "";
    if (request->yes)
        return true;
    printf("Type yes to delete: ");
    fflush(stdout);
    if (fgets(answer, sizeof answer, stdin))
        answer[strcspn(answer, "\n")] = '\0';
    if (strcmp(answer, "yes") == 0)
        return true;
    fprintf(stderr, "%s: not confirmed; nothing is deleted (--yes does not ask)\n", title);
    return false;
}

/* Returns what was freed, or -1. */
static int64_t delete_one(const char *title, const struct run_entry *entry, int64_t bytes)
{
    struct error error = ERROR_INIT;
    bool gone = false;
    SCOPED_FREE char *path = path_for_people(entry->directory);
    SCOPED_FREE char *shown = printable(path);
    SCOPED_FREE char *label = printable(entry->label);
    if (state_directory_delete(entry->directory, &gone, &error) < 0) {
        SCOPED_FREE char *message = printable(error.message);
        fprintf(stderr, "%s: %s: %s\n", title, label, message);
        return -1;
    }
    if (gone)
        return bytes;
    fprintf(stderr, "%s: %s holds other files, which stay\n", title, shown);
    return bytes - directory_bytes(entry->directory);
}

static int delete_all(const char *title, const struct request *request, const struct run_entry **entries, size_t count)
{
    SCOPED_FREE int64_t *bytes = memory_allocate(count + 1, sizeof *bytes);
    int64_t freed = 0;
    size_t deleted = 0;
    SCOPED_BUFFER size = BUFFER_INIT(ANSWER_MAX);
    for (size_t i = 0; i < count; i++)
        print_victim(entries[i], bytes[i] = directory_bytes(entries[i]->directory));
    if (!is_confirmed(title, request))
        return EXIT_FAILURE;
    for (size_t i = 0; i < count; i++) {
        int64_t amount = delete_one(title, entries[i], bytes[i]);
        deleted += amount >= 0;
        freed += amount > 0 ? amount : 0;
    }
    run_print_bytes(freed, &size);
    printf("%zu run%s deleted, %s freed\n", deleted, deleted == 1 ? "" : "s", buffer_text(&size));
    return deleted == count ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool is_among(const struct run_entry *entry, const struct run_entry **entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (entries[i] == entry)
            return true;
    return false;
}

static int delete_runs(const char *title, const struct request *request, const struct run_list *list,
                       struct error *error)
{
    const struct run_entry **entries = memory_allocate((size_t)request->name_count, sizeof *entries);
    size_t count = 0;
    int code = EXIT_SUCCESS;
    for (int i = 0; i < request->name_count && code >= 0; i++) {
        const struct run_entry *entry;
        if (run_list_find(list, request->names[i], &entry, error) < 0)
            code = -1;
        else if (!may_go(title, request, list, entry))
            code = EXIT_FAILURE;
        else if (!is_among(entry, entries, count))
            entries[count++] = entry;
    }
    if (code >= 0 && count > 0 && delete_all(title, request, entries, count) != EXIT_SUCCESS)
        code = EXIT_FAILURE;
    free(entries);
    return code;
}

/* ---------------------------------------------------------------- prune */

static int newest_first(const void *left, const void *right)
{
    int64_t a = (*(const struct run_entry *const *)left)->record.updated_ms;
    int64_t b = (*(const struct run_entry *const *)right)->record.updated_ms;
    return (a < b) - (a > b);
}

/* False: the record does not say when the run ended, so that it may be a new one. */
static bool has_time(const char *title, const struct run_entry *entry)
{
    SCOPED_FREE char *label = printable(entry->label);
    if (entry->record.updated_ms <= 0)
        fprintf(stderr, "%s: %s stays: its record does not say when it ended; `cox runs delete` deletes it\n", title,
                label);
    return entry->record.updated_ms > 0;
}

/* Those that have ended, the newest first. */
static size_t ended_runs(const char *title, const struct run_list *list, const struct run_entry **entries)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct run_entry *entry = &list->entries[i];
        if (!entry->trouble && !entry->goes_on && has_time(title, entry))
            entries[count++] = entry;
    }
    qsort(entries, count, sizeof *entries, newest_first);
    return count;
}

static int prune(const char *title, const struct request *request, const struct run_list *list, struct error *error)
{
    (void)error;
    const struct run_entry **entries = memory_allocate(list->count + 1, sizeof *entries);
    size_t count = ended_runs(title, list, entries), chosen = 0, kept = request->keep > 0 ? (size_t)request->keep : 0;
    int64_t now_ms = clock_now_ms();
    for (size_t i = kept; i < count; i++) {
        bool is_old = request->older_than_ms < 0 || now_ms - entries[i]->record.updated_ms > request->older_than_ms;
        if (is_old && may_go(title, request, list, entries[i]))
            entries[chosen++] = entries[i];
    }
    int code = EXIT_SUCCESS;
    if (chosen == 0)
        puts("nothing to delete");
    else
        code = delete_all(title, request, entries, chosen);
    free(entries);
    return code;
}

/* ---------------------------------------------------------------- compare */

static int compare(const char *title, const struct request *request, const struct run_list *list, struct error *error)
{
    (void)title;
    const struct run_entry *left, *right;
    SCOPED_JSON *left_manifest = NULL;
    SCOPED_JSON *right_manifest = NULL;
    SCOPED_BUFFER text = BUFFER_INIT(RUN_PRINT_MAX);
    if (run_list_find(list, request->names[0], &left, error) < 0 ||
        run_list_find(list, request->names[1], &right, error) < 0 ||
        run_record_manifest(left->directory, &left_manifest, error) < 0 ||
        run_record_manifest(right->directory, &right_manifest, error) < 0)
        return -1;
    run_print_comparison(left, left_manifest, right, right_manifest, &text);
    fputs(buffer_text(&text), stdout);
    return EXIT_SUCCESS;
}

/* ---------------------------------------------------------------- the command */

typedef int runs_action(const char *title, const struct request *request, const struct run_list *list,
                        struct error *error);

static const struct {
    const char *name, *options; /* which it takes, by the letters below */
    int names_min, names_max;
    runs_action *run;
} actions[] = {{"", "so", 0, 0, list_runs},
               {"delete", "sy", 1, 1000, delete_runs},
               {"prune", "sykO", 0, 0, prune},
               {"compare", "s", 2, 2, compare}};
#define ACTION_COUNT (sizeof actions / sizeof *actions)

static const struct option known[] = {
    {"state", required_argument, NULL, 's'},
    {"output", required_argument, NULL, 'o'},
    {"older-than", required_argument, NULL, 'O'},
    {"keep", required_argument, NULL, 'k'},
    {"yes", no_argument, NULL, 'y'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool take_form(const char *word, enum output_form *ret_form)
{
    if (strcmp(word, "wide") == 0)
        *ret_form = OUTPUT_WIDE;
    else if (strcmp(word, "json") == 0)
        *ret_form = OUTPUT_JSON;
    else if (strcmp(word, "name") == 0)
        *ret_form = OUTPUT_NAME;
    else
        return false;
    return true;
}

/* Refuses a bare number, which might be meant as days or hours, but for 0. */
static bool age_parse(const char *text, int64_t *ret_ms)
{
    return duration_parse(text, ret_ms) && (*ret_ms == 0 || strpbrk(text, "smhd"));
}

/* False: the argument is wrong, which is said. */
static bool take(const char *title, struct request *request, int option, const char *argument)
{
    const char *wanted = NULL;
    if (option == 's')
        request->state = argument;
    else if (option == 'y')
        request->yes = true;
    else if (option == 'o' && !take_form(argument, &request->output))
        wanted = "--output takes wide, json or name";
    else if (option == 'O' && !age_parse(argument, &request->older_than_ms))
        wanted = "--older-than takes a time with its unit, such as 30m, 12h or 10d";
    else if (option == 'k' && !number_parse(argument, &request->keep))
        wanted = "--keep takes a whole number of at least 0";
    if (wanted)
        fprintf(stderr, "%s: \"%s\": %s\n", title, argument, wanted);
    return !wanted;
}

/* Returns an exit code when the command ends here, else -1. */
static int read_options(int count, char **words, size_t action, struct request *request)
{
    for (int option; (option = getopt_long(count, words, "o:h", known, NULL)) != -1;) {
        if (option == 'h')
            return command_usage(true, usage);
        if (option == '?')
            return command_refuse_option(words, known, usage);
        if (!strchr(actions[action].options, option)) {
            fprintf(stderr, "%s: it takes no such option\n", words[0]);
            return command_usage(false, usage);
        }
        if (!take(words[0], request, option, optarg))
            return command_usage(false, usage);
    }
    request->names = words + optind;
    request->name_count = count - optind;
    if (request->name_count < actions[action].names_min || request->name_count > actions[action].names_max)
        return command_usage(false, usage);
    if (actions[action].run == prune && request->older_than_ms < 0 && request->keep < 0) {
        fprintf(stderr, "%s: say which: --older-than 7d, --keep 3, or both\n", words[0]);
        return command_usage(false, usage);
    }
    return -1;
}

static int act(const char *title, size_t action, struct request *request)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    SCOPED(run_list_release) struct run_list others = {.count = 0};
    struct error error = ERROR_INIT;
    int code = run_list_read(request->state, &list, &error);
    request->others = &others;
    if (code == 0 && request->state && strchr(actions[action].options, 'y'))
        code = run_list_read(NULL, &others, &error);
    if (code == 0)
        code = actions[action].run(title, request, &list, &error);
    if (code >= 0)
        return code;
    fprintf(stderr, "%s: %s\n", title, error.message);
    return EXIT_FAILURE;
}

int command_runs(int count, char **words)
{
    struct request request = {.older_than_ms = -1, .keep = -1};
    size_t action = 0;
    const char *word = count > 1 && words[1][0] != '-' ? words[1] : "";
    while (action < ACTION_COUNT && strcmp(actions[action].name, word) != 0)
        action++;
    if (action == ACTION_COUNT) {
        const char *names[ACTION_COUNT];
        for (size_t i = 0; i < ACTION_COUNT; i++)
            names[i] = actions[i].name;
        command_refuse_word(words[0], word, names, ACTION_COUNT);
        return command_usage(false, usage);
    }
    SCOPED_FREE char *title = *word ? memory_format("%s %s", words[0], word) : memory_copy_string(words[0]);
    char **rest = words + (*word ? 1 : 0);
    rest[0] = title;
    int code = read_options(count - (*word ? 1 : 0), rest, action, &request);
    return code >= 0 ? code : act(title, action, &request);
}
