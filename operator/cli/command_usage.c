/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "operator/cli/command.h"

int command_usage(bool asked, const char *text)
{
    if (asked)
        fputs(text, stdout);
    else
        fprintf(stderr, "%.*s\n", (int)strcspn(text, "\n"), text);
    return asked ? 0 : EXIT_USAGE;
}
