/* SPDX-License-Identifier: Apache-2.0
 *
 * Augments training images (He et al. 2016, section 4.2): pads an image with zeros, crops it back
 * to its own size at a random place, and mirrors half of the crops. The random numbers are a pure
 * function of seed, epoch and example (Philox), so every worker, after any restart, gets the same
 * values. Under PeerToPeer each worker has a seed of its own.
 */
#ifndef COXSWAIN_DATA_AUGMENTATION_H
#define COXSWAIN_DATA_AUGMENTATION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_document.h"

struct augmentation {
    bool horizontal_flip;
    int64_t padding;  /* pixels on each side; less than the image's height and width */
    int64_t image[3]; /* H W C */
};

/* The random choices for one example in one epoch. */
struct augmentation_draw {
    int64_t down, right; /* pixels by which the image is shifted in the crop, from -padding to padding */
    bool mirrored;
};
struct augmentation_draw augmentation_draw(const struct augmentation *augmentation, uint64_t seed, int64_t epoch,
                                           int64_t example);

/* Checks the spec against the model's `image` shape (example_format.h). ERROR_INVALID if the model takes no
 * images, or if the padding is so large that a crop could miss the image. */
int augmentation_check(const struct augmentation_spec *spec, const int64_t image[3],
                       struct augmentation *ret_augmentation, struct error *error);
/* Returns whether the augmentation changes anything. */
bool augmentation_is_active(const struct augmentation *augmentation);

/* Augments one image. Both are H W C and must not overlap. */
void augmentation_apply(const struct augmentation *augmentation, const struct augmentation_draw *draw,
                        const float *pixels, float *ret_pixels);

#endif
