/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/string_format.h"

#include <criterion/criterion.h>
#include <stdlib.h>

struct verdict {
    enum string_format format;
    const char *text;
    bool matches;
};

static const struct verdict verdicts[] = {
    {STRING_FORMAT_ANY, "any \t thing", true},
    {STRING_FORMAT_NAME, "runs-2", true},
    {STRING_FORMAT_NAME, "2", true},
    {STRING_FORMAT_NAME, "-runs", false},
    {STRING_FORMAT_NAME, "runs-", false},
    {STRING_FORMAT_NAME, "Runs", false},
    {STRING_FORMAT_NAME, "a.b", false},
    {STRING_FORMAT_NAME, "a\nb", false},
    {STRING_FORMAT_NAME, "a\n", false},
    {STRING_FORMAT_NAME, "", false},
    {STRING_FORMAT_JOB_NAME, "d2", true},
    {STRING_FORMAT_JOB_NAME, "2d", false},
    {STRING_FORMAT_DOTTED_NAME, "batch.low", true},
    {STRING_FORMAT_DOTTED_NAME, "batch..low", false},
    {STRING_FORMAT_QUALIFIED_NAME, "nvidia.com/gpu", true},
    {STRING_FORMAT_QUALIFIED_NAME, "cpu", true},
    {STRING_FORMAT_QUALIFIED_NAME, "a/b/c", false},
    {STRING_FORMAT_QUALIFIED_NAME, "/gpu", false},
    {STRING_FORMAT_WORD, "conv1.a_b", true},
    {STRING_FORMAT_WORD, "conv 1", false},
    {STRING_FORMAT_PATH, "mnist/train.gz", true},
    {STRING_FORMAT_PATH, "/data/images", true},
    {STRING_FORMAT_PATH, ".hidden/..two/a..", true},
    {STRING_FORMAT_PATH, "..", false},
    {STRING_FORMAT_PATH, "a/../b", false},
    {STRING_FORMAT_PATH, "a/..", false},
    {STRING_FORMAT_PATH, "./a", false},
    {STRING_FORMAT_PATH, "a//b", false},
    {STRING_FORMAT_PATH, "a/", false},
    {STRING_FORMAT_PATH, "/", false},
    {STRING_FORMAT_DOWNLOAD, "https://a.b:1/c/d?e", true},
    {STRING_FORMAT_DOWNLOAD, "https://a.b/c/", false},
    {STRING_FORMAT_DOWNLOAD, "https://a.b", false},
    {STRING_FORMAT_DOWNLOAD, "http://a.b/c", false},
    {STRING_FORMAT_DOWNLOAD, "https://a.b/c#d", false},
    {STRING_FORMAT_DOWNLOAD, "hf://org/name@v1.0/*.bin", true},
    {STRING_FORMAT_DOWNLOAD, "hf://datasets/org/name", true},
    {STRING_FORMAT_DOWNLOAD, "hf://name", false},
    {STRING_FORMAT_IMAGE, "registry.example/a:1@sha256:0", true},
    {STRING_FORMAT_IMAGE, "a b", false},
    {STRING_FORMAT_DECIMAL, "3e-4", true},
    {STRING_FORMAT_DECIMAL, "-0.5E+10", true},
    {STRING_FORMAT_DECIMAL, "0", true},
    {STRING_FORMAT_DECIMAL, "01", false},
    {STRING_FORMAT_DECIMAL, ".5", false},
    {STRING_FORMAT_DECIMAL, "1.", false},
    {STRING_FORMAT_DECIMAL, "+1", false},
    {STRING_FORMAT_DECIMAL, "1e", false},
    {STRING_FORMAT_DECIMAL, "0x1p3", false},
    {STRING_FORMAT_DECIMAL, "inf", false},
    {STRING_FORMAT_DECIMAL, "nan", false},
    {STRING_FORMAT_DECIMAL, "1 ", false},
};

Test(string_format, judges)
{
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        cr_expect(string_format_matches(verdicts[i].format, verdicts[i].text) == verdicts[i].matches, "%s: '%s'",
                  string_format_words(verdicts[i].format), verdicts[i].text);
}

Test(string_format, decimals_there_and_back)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"}, {3e-4, "0.0003"}, {1e-8, "1e-08"}, {1.0 / 3, "0.3333333333333333"}, {0, "0"}, {5, "5"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = decimal_text(cases[i].value);
        cr_expect_str_eq(text, cases[i].text);
        cr_expect(string_format_matches(STRING_FORMAT_DECIMAL, text));
        cr_expect(decimal_value(text) == cases[i].value);
        free(text);
    }
}
