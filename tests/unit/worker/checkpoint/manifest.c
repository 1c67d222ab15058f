/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/manifest.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/crc32c.h"

static void print_example(struct buffer *text)
{
    struct manifest_file file = {.name = "rank-00000.safetensors", .bytes = 12, .crc32c = 0x00c0ffee};
    const struct manifest manifest = {.step = 120,
                                      .attempt = 1,
                                      .incarnation = 4,
                                      .generation = 9,
                                      .workers = 3,
                                      .logical_shards = 12,
                                      .seed = 7,
                                      .data_epoch = 2,
                                      .examples_consumed = 512,
                                      .job_uid = (char *)"uid",
                                      .files = &file,
                                      .file_count = 1};
    buffer_init(text, MANIFEST_BYTES_MAX);
    cr_assert_eq(manifest_print(&manifest, text, NULL), 0);
}

Test(manifest, reads_back)
{
    SCOPED_BUFFER text;
    print_example(&text);
    struct manifest manifest;
    struct error error = ERROR_INIT;
    cr_assert_eq(manifest_parse(text.data, text.length, &manifest, &error), 0, "%s", error.message);
    cr_assert_eq(manifest.step, 120);
    cr_assert_eq(manifest.incarnation, 4);
    cr_assert_eq(manifest.logical_shards, 12);
    cr_assert_eq(manifest.examples_consumed, 512);
    cr_assert_str_eq(manifest.job_uid, "uid");
    cr_assert_eq(manifest.file_count, 1);
    cr_assert_eq(manifest.files[0].crc32c, 0x00c0ffee);
    manifest_release(&manifest);
}

Test(manifest, the_scale_of_losses_is_there_where_they_are_scaled)
{
    struct manifest_file file = {.name = "rank-00000.safetensors", .bytes = 12};
    struct manifest manifest = {
        .loss_scale = 32768, .good_steps = 41, .skipped_steps = 1, .files = &file, .file_count = 1};
    for (int scaled = 1; scaled >= 0; scaled--) {
        SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_BYTES_MAX);
        struct manifest read;
        if (!scaled)
            manifest.loss_scale = manifest.good_steps = manifest.skipped_steps = 0;
        cr_assert_eq(manifest_print(&manifest, &text, NULL), 0);
        cr_expect_eq(strstr(buffer_text(&text), "lossScale") != NULL, scaled);
        cr_assert_eq(manifest_parse(text.data, text.length, &read, NULL), 0);
        cr_expect(read.loss_scale == manifest.loss_scale && read.good_steps == manifest.good_steps &&
                  read.skipped_steps == manifest.skipped_steps);
        manifest_release(&read);
    }
}

Test(manifest, every_flipped_bit_is_noticed)
{
    SCOPED_BUFFER text;
    print_example(&text);
    for (size_t i = 0; i < 8 * text.length; i++) {
        struct manifest manifest;
        text.data[i / 8] ^= (char)(1 << i % 8);
        cr_assert_eq(manifest_parse(text.data, text.length, &manifest, NULL), -1, "bit %zu", i);
        text.data[i / 8] ^= (char)(1 << i % 8);
    }
}

Test(manifest, every_truncation_is_noticed)
{
    SCOPED_BUFFER text;
    print_example(&text);
    for (size_t length = 0; length < text.length; length++) {
        struct manifest manifest;
        cr_assert_eq(manifest_parse(text.data, length, &manifest, NULL), -1, "%zu bytes", length);
    }
}

/* With a digest that fits, so that the fields themselves are judged. */
static void expect_refusal(const char *body, const char *expected)
{
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_BYTES_MAX);
    buffer_append_string(&text, body, NULL);
    uint32_t crc = crc32c(0, text.data, text.length);
    buffer_format(&text, ",\"digest\":\"%08x\"}", crc);
    struct manifest manifest;
    struct error error = ERROR_INIT;
    cr_assert_eq(manifest_parse(text.data, text.length, &manifest, &error), -1, "%s was taken", body);
    cr_assert_not_null(strstr(error.message, expected), "%s: %s", body, error.message);
}

#define NUMBERS                                                                                                        \
    "\"step\":1,\"attempt\":1,\"incarnation\":1,\"generation\":1,\"workers\":1,\"logicalShards\":1,\"seed\":1,"        \
    "\"dataEpoch\":0,\"examplesConsumed\":0"

Test(manifest, hostile_fields_get_a_sentence)
{
    expect_refusal("{\"format\":\"zip\"", "not a checkpoint's manifest");
    expect_refusal("{\"format\":\"coxswain-checkpoint\",\"version\":1", "version 1");
    expect_refusal("{\"format\":\"coxswain-checkpoint\",\"version\":3", "version 3");
    expect_refusal("{\"format\":\"coxswain-checkpoint\",\"version\":2", "step is missing");
    expect_refusal("{\"format\":\"coxswain-checkpoint\",\"version\":2," NUMBERS, "files is not a list");
    expect_refusal("{\"format\":\"coxswain-checkpoint\",\"version\":2," NUMBERS ",\"files\":[]", "files is not a list");
    expect_refusal("{\"format\":\"coxswain-checkpoint\",\"version\":2," NUMBERS
                   ",\"files\":[{\"name\":\"../../etc/passwd\",\"bytes\":1,\"crc32c\":\"00000000\"}]",
                   "not a plain file name");
    expect_refusal("{\"format\":\"coxswain-checkpoint\",\"version\":2," NUMBERS
                   ",\"files\":[{\"name\":\"a\",\"bytes\":-1,\"crc32c\":\"00000000\"}]",
                   "malformed");
    expect_refusal("{\"format\":\"coxswain-checkpoint\",\"version\":2," NUMBERS
                   ",\"files\":[{\"name\":\"a\",\"bytes\":1,\"crc32c\":\"xyz\"}]",
                   "malformed");
}

#define FILES ",\"files\":[{\"name\":\"a\",\"bytes\":1,\"crc32c\":\"00000000\"}]"

/* Each manifest has a correct digest, since anybody with write access to the directory can make one. */
Test(manifest, forged_fields_are_refused)
{
    static const char *const names[] = {"step",          "attempt", "incarnation", "generation",      "workers",
                                        "logicalShards", "seed",    "dataEpoch",   "examplesConsumed"};
    static const char *const values[] = {"1e18", "1.5", "-1", "\"1\"", "true", "null", "[1]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_BYTES_MAX);
            buffer_append_string(&text, "{\"format\":\"coxswain-checkpoint\",\"version\":2", NULL);
            for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
                buffer_format(&text, ",\"%s\":%s", names[n], n == i ? values[k] : "1");
            buffer_append_string(&text, FILES, NULL);
            expect_refusal(buffer_text(&text), names[i]);
        }
}

Test(manifest, forged_values_and_types_are_refused)
{
#define BEGIN "{\"format\":\"coxswain-checkpoint\",\"version\":2,"
    expect_refusal(BEGIN "\"step\":1,\"attempt\":1,\"incarnation\":1,\"generation\":1,\"workers\":1,"
                         "\"logicalShards\":1000000000,\"seed\":1,\"dataEpoch\":0,\"examplesConsumed\":0" FILES,
                   "logicalShards is 1000000000; at most 4096 is possible");
    expect_refusal(BEGIN NUMBERS FILES ",\"model\":[1]", "model is not an object");
    expect_refusal(BEGIN NUMBERS FILES ",\"optimizer\":\"sgd\"", "optimizer is not an object");
    expect_refusal(BEGIN NUMBERS FILES ",\"tickets\":3", "tickets is not an object");
    expect_refusal(BEGIN NUMBERS FILES ",\"jobUID\":{}", "jobUID is not a text");
    expect_refusal(BEGIN NUMBERS FILES ",\"lossScale\":1e15", "lossScale is");
    expect_refusal(BEGIN NUMBERS ",\"files\":[{\"name\":\"a\",\"bytes\":1,\"crc32c\":\"+0x00001\"}]", "malformed");
    expect_refusal(BEGIN NUMBERS ",\"files\":[{\"name\":\"a\",\"bytes\":1,\"crc32c\":\"00000000\"},"
                                 "{\"name\":\"a\",\"bytes\":1,\"crc32c\":\"00000000\"}]",
                   "listed twice");
#undef BEGIN
}
