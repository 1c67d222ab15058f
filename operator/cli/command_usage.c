/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/nearest_word.h"
#include "common/scope.h"
#include "operator/cli/command.h"

#define OPTIONS_MAX 64

int command_usage(bool asked, const char *text)
{
    if (asked)
        fputs(text, stdout);
    else
        fprintf(stderr, "%.*s\n", (int)strcspn(text, "\n"), text);
    return asked ? 0 : EXIT_USAGE;
}

int command_refuse_option(char **words, const struct option *known, const char *text)
{
    const char *names[OPTIONS_MAX], *word = words[optind - 1];
    size_t count = 0;
    while (known[count].name && count < OPTIONS_MAX) {
        names[count] = known[count].name;
        count++;
    }
    if (optopt == 0 && strncmp(word, "--", 2) == 0) { /* else its argument is missing, or it is a letter */
        SCOPED_FREE char *name = memory_copy_bytes(word + 2, strcspn(word + 2, "="));
        const char *meant = nearest_word(name, names, count);
        if (meant)
            fprintf(stderr, "did you mean --%s?\n", meant);
    }
    return command_usage(false, text);
}

void command_refuse_word(const char *title, const char *word, const char *const *known, size_t count)
{
    const char *meant = nearest_word(word, known, count);
    fprintf(stderr, "%s: there is no \"%s\"%s%s%s\n", title, word, meant ? "; did you mean \"" : "", meant ? meant : "",
            meant ? "\"?" : "");
}
