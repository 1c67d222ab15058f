/* SPDX-License-Identifier: Apache-2.0 */
#include "common/failure_line.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *what, *message;
    int code;
    const char *words;
} cases[] = {
    {"nothing", "", 1, ""},
    {"a line", "no such file\n\n", 65, "no such file"},
    {"a traceback, with noise behind it",
     "Traceback (most recent call last):\n  File \"a.py\", line 6, in <module>\n    g()\nValueError: 7 is odd\nbye\n",
     1, "ValueError: 7 is odd"},
    {"the last of two", "KeyError: 'a'\nDuring handling of it:\ntorch.cuda.OutOfMemoryError: 2 GiB\n", 1,
     "torch.cuda.OutOfMemoryError: 2 GiB"},
    {"torchrun's own error says less than the script's",
     "[rank1]: ValueError: 7 is odd\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n=====\n", 1,
     "ValueError: 7 is odd"},
    {"a type without words", "step 1\nKeyboardInterrupt\n", 130, "KeyboardInterrupt"},
    {"a sentence that speaks of errors", "no Error: at all\nthe end\n", 1, "the end"},
    {"abort", "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no room\n", 134,
     "what():  no room"},
    {"noise before SIGSEGV", "step 12\nstep 13\n", 139, ""},
    {"noise before SIGKILL", "error: not this\nstep 13\n", 137, ""},
    {"the worker's own", "exit 65 (the training data is wrong or missing): cannot open a: No such file\n", 65,
     "cannot open a: No such file"},
    {"the worker's own after a disruption", "exit 160 (lost contact with the crew): chief is gone\n", 160,
     "chief is gone"},
    {"a status document", "{\"step\": 1}", 1, ""},
    {"control characters", "\033[31merror:\033[0m a\tb\001c\033]\n", 1, "error: a b c"},
};

Test(failure_line, the_line_that_names_the_error)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_BUFFER text = BUFFER_INIT(4096);
        failure_line_append(cases[i].message, cases[i].code, &text);
        cr_expect_str_eq(buffer_text(&text), cases[i].words, "%s: '%s'", cases[i].what, buffer_text(&text));
    }
}

Test(failure_line, long_lines_are_cut_at_their_end)
{
    char message[3000];
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    memset(message, 'x', sizeof message);
    memcpy(message, "ValueError: ", 12);
    message[sizeof message - 1] = '\0';
    failure_line_append(message, 1, &text);
    cr_assert_eq(text.length, FAILURE_LINE_MAX);
    cr_assert(strncmp(buffer_text(&text), "ValueError: x", 13) == 0);
    cr_assert_str_eq(buffer_text(&text) + FAILURE_LINE_MAX - 3, "…");
}

Test(failure_line, a_line_that_the_kubelet_cut_is_not_quoted)
{
    char message[2100];
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    memset(message, 'x', sizeof message);
    memcpy(message, "Error: half\n", 12);
    memcpy(message + sizeof message - 7, "\nlast\n", 7);
    failure_line_append(message, 1, &text);
    cr_assert_str_eq(buffer_text(&text), "last");
}
