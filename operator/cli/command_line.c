/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/command_line.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/cli/command.h"

static const char shared[] = "\n"
                             "  -n, --namespace NAME   the job's namespace (default: the context's)\n"
                             "  --kubeconfig FILE      default: $KUBECONFIG, else ~/.kube/config\n"
                             "  --context NAME         default: the kubeconfig's current one\n";

static const char of_state[] =
    "\n"
    "  --state RUN            a run of cox run on this machine, by its name (`cox runs` lists them) or state "
    "directory,\n"
    "                         also one that has ended; the job's name may be left out then\n";

/* The letter stands for the option in command_usage.options, and is its short form where it is one of `short_forms`. */
static const struct option table[] = {
    {"namespace", required_argument, NULL, 'n'},
    {"kubeconfig", required_argument, NULL, 'k'},
    {"context", required_argument, NULL, 'c'},
    {"help", no_argument, NULL, 'h'},
    {"output", required_argument, NULL, 'o'},
    {"all-namespaces", no_argument, NULL, 'A'},
    {"selector", required_argument, NULL, 'l'},
    {"watch", no_argument, NULL, 'w'},
    {"follow", no_argument, NULL, 'f'},
    {"tail", required_argument, NULL, 't'},
    {"timestamps", no_argument, NULL, 'T'},
    {"all-attempts", no_argument, NULL, 'a'},
    {"role", required_argument, NULL, 'r'},
    {"index", required_argument, NULL, 'i'},
    {"container", required_argument, NULL, 'C'},
    {"for", required_argument, NULL, 'F'},
    {"timeout", required_argument, NULL, 'm'},
    {"workers", required_argument, NULL, 'W'},
    {"once", no_argument, NULL, 'O'},
    {"no-wait", no_argument, NULL, 'N'},
    {"port", required_argument, NULL, 'p'},
    {"state", required_argument, NULL, 's'},
    {"runs", no_argument, NULL, 'R'},
    {NULL, 0, NULL, 0},
};
static const char always[] = "nkch";
static const char short_forms[] = "n:o:Al:wfh";

static const char *forms_of(const struct command_usage *usage)
{
    return usage->forms ? usage->forms : OUTPUT_FORMS;
}

static bool takes_form(const struct command_usage *usage, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = forms_of(usage); *at; at += strcspn(at, ", "), at += strspn(at, ", "))
        if (strcspn(at, ", ") == length && strncmp(at, word, length) == 0)
            return true;
    return false;
}

static bool output_parse(const struct command_usage *usage, const char *word, enum output_form *ret_form)
{
    static const char *const words[] = {[OUTPUT_WIDE] = "wide",
                                        [OUTPUT_JSON] = "json",
                                        [OUTPUT_YAML] = "yaml",
                                        [OUTPUT_NAME] = "name",
                                        [OUTPUT_CSV] = "csv"};
    for (enum output_form form = OUTPUT_WIDE; form <= OUTPUT_CSV && takes_form(usage, word); form++) {
        if (strcmp(words[form], word) == 0) {
            *ret_form = form;
            return true;
        }
    }
    return false;
}

bool number_parse(const char *text, int64_t *ret_number)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || number > INT32_MAX)
        return false;
    *ret_number = number;
    return true;
}

bool duration_parse(const char *text, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    char *end;
    long long number = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || number > INT32_MAX)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *ret_ms = number * units[i].ms;
            return true;
        }
    }
    return false;
}

/* False: the argument is wrong. */
static bool take(const struct command_usage *usage, struct command_line *line, int letter, const char *argument)
{
    const char **texts[128] = {
        ['n'] = &line->name_space, ['k'] = &line->kubeconfig, ['c'] = &line->context,   ['l'] = &line->selector,
        ['r'] = &line->role,       ['C'] = &line->container,  ['F'] = &line->condition, ['s'] = &line->state};
    bool *flags[128] = {
        ['A'] = &line->all_namespaces, ['w'] = &line->watch,   ['f'] = &line->follow,       ['T'] = &line->timestamps,
        ['O'] = &line->once,           ['N'] = &line->no_wait, ['a'] = &line->all_attempts, ['R'] = &line->runs};
    int64_t *numbers[128] = {['t'] = &line->tail, ['i'] = &line->index, ['W'] = &line->workers, ['p'] = &line->port};
    if (texts[letter])
        *texts[letter] = argument;
    else if (flags[letter])
        *flags[letter] = true;
    else if (numbers[letter])
        return number_parse(argument, numbers[letter]);
    else if (letter == 'o')
        return output_parse(usage, argument, &line->output);
    else
        return duration_parse(argument, &line->timeout_ms);
    return true;
}

static const char *option_name(int letter)
{
    const struct option *option = table;
    while (option->val != letter)
        option++;
    return option->name;
}

/* Describes the argument of an option that checks it. */
static const char *what_it_takes(int letter)
{
    return letter == 'o'   ? "one of "
           : letter == 'm' ? "a time such as 90 or 90s (seconds), 5m, 2h or 1d"
                           : "a whole number of at least 0";
}

static int refuse(const struct command_usage *usage)
{
    return command_usage(false, usage->text);
}

/* Suggests only options that the command takes. */
static int refuse_option(char **words, const struct command_usage *usage)
{
    struct option taken[sizeof table / sizeof *table] = {{NULL, 0, NULL, 0}};
    size_t count = 0;
    for (const struct option *option = table; option->name; option++)
        if (strchr(always, option->val) || strchr(usage->options, option->val))
            taken[count++] = *option;
    return command_refuse_option(words, taken, usage->text);
}

int command_line_parse(int count, char **words, const struct command_usage *usage, struct command_line *ret_line)
{
    *ret_line = (struct command_line){.index = -1, .tail = -1, .workers = -1, .port = -1, .timeout_ms = -1};
    for (int letter; (letter = getopt_long(count, words, short_forms, table, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage->text, stdout);
            fputs(shared, stdout);
            fputs(strchr(usage->options, 's') ? of_state + 1 : "", stdout);
            return 0;
        }
        if (letter == '?')
            return refuse_option(words, usage);
        if (!strchr(always, letter) && !strchr(usage->options, letter)) {
            fprintf(stderr, "%s: takes no --%s\n", words[0], option_name(letter));
            return refuse(usage);
        }
        if (!take(usage, ret_line, letter, optarg)) {
            fprintf(stderr, "%s: --%s \"%s\": it takes %s%s\n", words[0], option_name(letter), optarg,
                    what_it_takes(letter), letter == 'o' ? forms_of(usage) : "");
            return refuse(usage);
        }
    }
    ret_line->names = words + optind;
    ret_line->name_count = count - optind;
    ret_line->sweeps = usage->sweeps;
    if (ret_line->name_count > 0 && usage->names_max == 0 && strchr(usage->options, 's')) {
        fprintf(stderr, "%s: it takes no NAME; for a run of cox run on this machine: %s --state %s\n", words[0],
                words[0], ret_line->names[0]);
        return refuse(usage);
    }
    ret_line->lacks_name = ret_line->state && ret_line->name_count == 0 && usage->names_min > 0;
    if ((ret_line->name_count < usage->names_min && !ret_line->lacks_name) || ret_line->name_count > usage->names_max)
        return refuse(usage);
    return -1;
}
