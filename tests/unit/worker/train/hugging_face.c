/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/hugging_face.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "common/json.h"
#include "worker/checkpoint/file.h"

static char place[64], config_path[96];

static void make_place(void)
{
    snprintf(place, sizeof place, "/tmp/coxswain-hugging-face-XXXXXX");
    cr_assert(mkdtemp(place));
    snprintf(config_path, sizeof config_path, "%s/config.json", place);
}

static void remove_place(void)
{
    (void)unlink(config_path);
    (void)rmdir(place);
}

/* Exports under that name; returns the config that was written, or NULL. */
static struct json *written(enum preset preset, enum export_names names, const char *name)
{
    const struct job_document job = {.export_names = names,
                                     .model = {.preset = preset,
                                               .width = FIELD_UNSET,
                                               .depth = 3,
                                               .heads = FIELD_UNSET,
                                               .context = FIELD_UNSET,
                                               .vocabulary = FIELD_UNSET}};
    struct json *config = NULL;
    struct error error = ERROR_INIT;
    char path[96];
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    snprintf(path, sizeof path, "%s/%s", place, name);
    cr_assert_eq(hugging_face_write_config(&job, path, &error), 0, "%s", error.message);
    if (access(config_path, F_OK) < 0)
        return NULL;
    cr_assert_eq(file_read(config_path, &text, &error), 0, "%s", error.message);
    cr_assert_eq(json_parse(buffer_text(&text), text.length, 4096, &config, &error), 0, "%s", error.message);
    return config;
}

Test(hugging_face, the_config_has_the_sizes_of_the_preset, .init = make_place, .fini = remove_place)
{
    SCOPED_JSON *gpt2 = written(PRESET_GPT2_355M, EXPORT_HUGGING_FACE_NAMES, "model.safetensors");
    cr_expect_eq(json_integer_at(gpt2, "n_embd", 0), 1024);
    cr_expect_eq(json_integer_at(gpt2, "n_layer", 0), 3);
    cr_expect_eq(json_integer_at(gpt2, "n_head", 0), 16);
    cr_expect_eq(json_integer_at(gpt2, "n_positions", 0), 1024);
    cr_expect_eq(json_integer_at(gpt2, "eos_token_id", 0), 50256);
    cr_expect(json_boolean_at(gpt2, "tie_word_embeddings", false));
    SCOPED_JSON *bytes = written(PRESET_GPT_BYTES, EXPORT_HUGGING_FACE_NAMES, "model.safetensors");
    cr_expect_eq(json_integer_at(bytes, "vocab_size", 0), 256);
    cr_expect_eq(json_type(json_at(bytes, "eos_token_id")), JSON_NULL);
    cr_expect_not(json_boolean_at(bytes, "tie_word_embeddings", true));
}

Test(hugging_face, other_exports_have_no_config, .init = make_place, .fini = remove_place)
{
    cr_expect_null(written(PRESET_GPT_BYTES, EXPORT_OWN_NAMES, "model.safetensors"));
    cr_expect_null(written(PRESET_GPT_BYTES, EXPORT_HUGGING_FACE_NAMES, "bytes.safetensors"));
    cr_expect_null(written(PRESET_NONE, EXPORT_HUGGING_FACE_NAMES, "model.safetensors"));
    cr_expect_null(written(PRESET_MLP, EXPORT_HUGGING_FACE_NAMES, "model.safetensors"));
}
