/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of a library's algorithms products and convolutions are computed by, shape
 * by shape. It is measured once (device_search_begin), and bits follow it: so a
 * crew has one, and checkpoints keep it, as JSON:
 *
 *   {"device":"NVIDIA H200","library":"cuBLASLt 130100 and cuDNN 92801",
 *    "choices":[{"product":[512,768,3072,…],"algorithm":"000000000000001f…"},
 *               {"convolution":[56,56,64,…],"algorithm":"0000000000000007…"}]}
 *
 * A shape's numbers and an algorithm's words are the device's own. NVIDIA's header
 * says of a product's that the same version of cuBLAS takes them back.
 */
#ifndef COXSWAIN_DEVICE_ALGORITHM_RECORD_H
#define COXSWAIN_DEVICE_ALGORITHM_RECORD_H

#include <stdint.h>

#include "common/error.h"
#include "common/json.h"

#define ALGORITHM_NUMBERS 12
#define ALGORITHM_WORDS 8
#define ALGORITHM_NAME_MAX 128
#define ALGORITHM_CHOICES_MAX 512
/* A choice takes 500 bytes at most. */
#define ALGORITHM_RECORD_BYTES_MAX ((size_t)256 << 10)

enum algorithm_kind { ALGORITHM_PRODUCT, ALGORITHM_CONVOLUTION };
#define ALGORITHM_KINDS 2
/* "product" */
const char *algorithm_kind_name(enum algorithm_kind kind);

/* Without gaps, for memcmp. */
struct algorithm_choice {
    int64_t kind;
    int64_t shape[ALGORITHM_NUMBERS];
    uint64_t algorithm[ALGORITHM_WORDS];
};

struct algorithm_record {
    char device[ALGORITHM_NAME_MAX], library[ALGORITHM_NAME_MAX]; /* that it is for */
    unsigned count;
    struct algorithm_choice *choices; /* owned; NULL where there are none */
};

void algorithm_record_release(struct algorithm_record *record);
void algorithm_record_copy(const struct algorithm_record *record, struct algorithm_record *ret_copy);
bool algorithm_record_equal(const struct algorithm_record *one, const struct algorithm_record *other);
/* At its end; false where it is full. */
bool algorithm_record_add(struct algorithm_record *record, const struct algorithm_choice *choice);
/* NULL: it says nothing of this shape. */
const struct algorithm_choice *algorithm_record_find(const struct algorithm_record *record, enum algorithm_kind kind,
                                                     const int64_t shape[ALGORITHM_NUMBERS]);

/* The caller frees. */
struct json *algorithm_record_to_json(const struct algorithm_record *record);
/* ERROR_INVALID says what is malformed. */
int algorithm_record_from_json(const struct json *document, struct algorithm_record *ret_record, struct error *error);

#endif
