/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/hugging_face.h"

#include <string.h>

#include "common/data/file_name.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"
#include "worker/model/preset.h"

#define WEIGHTS "model.safetensors"
#define CONFIG_BYTES_MAX 4096
#define GPT2_VOCABULARY 50257

/* Only GPT-2's own vocabulary has a token, its last one, that stands between texts. */
static void set_token(struct json *config, const char *key, int64_t vocabulary)
{
    json_set(config, key, vocabulary == GPT2_VOCABULARY ? json_new_integer(vocabulary - 1) : json_new_null());
}

static struct json *config_of(const struct gpt_sizes *sizes)
{
    struct json *config = json_new_object();
    json_append_string(json_set_array(config, "architectures"), "GPT2LMHeadModel");
    json_set_string(config, "model_type", "gpt2");
    json_set_integer(config, "vocab_size", sizes->vocabulary);
    json_set_integer(config, "n_positions", sizes->context);
    json_set_integer(config, "n_embd", sizes->width);
    json_set_integer(config, "n_layer", sizes->depth);
    json_set_integer(config, "n_head", sizes->heads);
    json_set_string(config, "activation_function", "gelu_new");
    json_set_number(config, "layer_norm_epsilon", 1e-5);
    json_set_number(config, "embd_pdrop", sizes->dropout);
    json_set_number(config, "resid_pdrop", sizes->dropout);
    json_set_number(config, "attn_pdrop", 0);
    json_set_boolean(config, "tie_word_embeddings", sizes->tied);
    set_token(config, "bos_token_id", sizes->vocabulary);
    set_token(config, "eos_token_id", sizes->vocabulary);
    return config;
}

static bool find_sizes(const struct job_document *job, const char *path, struct gpt_sizes *ret_sizes)
{
    return job->export_names == EXPORT_HUGGING_FACE_NAMES && strcmp(file_name_of(path), WEIGHTS) == 0 &&
           preset_gpt_sizes(&job->model, ret_sizes);
}

bool hugging_face_has_config(const struct job_document *job, const char *path)
{
    struct gpt_sizes sizes;
    return find_sizes(job, path, &sizes);
}

int hugging_face_write_config(const struct job_document *job, const char *path, struct error *error)
{
    struct gpt_sizes sizes;
    if (!find_sizes(job, path, &sizes))
        return 0;
    SCOPED_JSON *config = config_of(&sizes);
    SCOPED_FREE char *file = memory_format("%.*s" HUGGING_FACE_CONFIG, (int)(file_name_of(path) - path), path);
    SCOPED_BUFFER text = BUFFER_INIT(CONFIG_BYTES_MAX);
    if (json_print_indented(config, &text, error) < 0 || file_replace(file, text.data, text.length, error) < 0)
        return error_wrap(error, "export");
    return 0;
}
