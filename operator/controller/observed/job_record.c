/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/job_record.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/controller/observed/packed_words.h"

struct job_record {
    char *invalid;
    unsigned char words[]; /* a struct training_job; its strings and lists are in the parsed job's memory */
};

#define JOB_WORDS (sizeof(struct training_job) / sizeof(uint64_t))
_Static_assert(sizeof(struct training_job) % sizeof(uint64_t) == 0, "it is made of words");

static void forget_defaults(struct training_job *job)
{
    size_t index = 0;
    for (const struct json *item = json_first(job->document.opaque); item; item = json_next(item), index++)
        if (item == job->status.training_class.defaults) {
            job->status.training_class.defaults = json_set_element(job->document.opaque, index, json_new_object());
            return;
        }
}

struct job_record *job_record_read(const struct json *object)
{
    struct training_job job;
    struct error error = ERROR_INIT;
    unsigned char words[PACKED_WORDS_MAX(JOB_WORDS)];
    bool invalid = training_job_parse(object, &job, &error) < 0;
    forget_defaults(&job);
    size_t size = packed_words_put(&job, JOB_WORDS, words);
    struct job_record *record = memory_allocate(1, sizeof *record + size);
    record->invalid = invalid ? memory_copy_string(error.message) : NULL;
    memcpy(record->words, words, size);
    return record;
}

void job_record_free(struct job_record *record)
{
    struct training_job job = job_record_view(record);
    training_job_release(&job);
    free(record->invalid);
    free(record);
}

struct training_job job_record_view(const struct job_record *record)
{
    struct training_job job;
    packed_words_take(record->words, JOB_WORDS, &job);
    return job;
}

const char *job_record_invalid(const struct job_record *record)
{
    return record->invalid;
}
