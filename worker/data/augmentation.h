/* SPDX-License-Identifier: Apache-2.0
 *
 * What training does to an image before it learns from it (He et al. 2016,
 * section 4.2): zeros around it, a piece of its own size cut out of that, and
 * half of the pieces mirrored. A pure function of seed, epoch and example
 * (Philox), like a dropout's masks: whoever reads an example of an epoch, in
 * whatever crew and after whatever restart, gets the same values, but under
 * PeerToPeer, where each worker has a seed of its own.
 */
#ifndef COXSWAIN_DATA_AUGMENTATION_H
#define COXSWAIN_DATA_AUGMENTATION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_document.h"

struct augmentation {
    bool horizontal_flip;
    int64_t padding;  /* below the image's height and width */
    int64_t image[3]; /* H W C */
};

/* Which one of all: of an example in an epoch. */
struct augmentation_draw {
    int64_t down, right; /* where the image lies in the piece, from -padding to padding */
    bool mirrored;
};
struct augmentation_draw augmentation_draw(const struct augmentation *augmentation, uint64_t seed, int64_t epoch,
                                           int64_t example);

/* `image` as a model has it (graph.h); ERROR_INVALID where there is none, or where nothing of it might be left. */
int augmentation_check(const struct augmentation_spec *spec, const int64_t image[3],
                       struct augmentation *ret_augmentation, struct error *error);
/* Whether it changes anything. */
bool augmentation_is_some(const struct augmentation *augmentation);

/* H W C each; they must not overlap. */
void augmentation_apply(const struct augmentation *augmentation, const struct augmentation_draw *draw,
                        const float *pixels, float *ret_pixels);

#endif
