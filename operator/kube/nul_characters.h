/* SPDX-License-Identifier: Apache-2.0
 *
 * NUL characters in the text of an object. API servers store them, and no string of C
 * has them, so that the parser refuses them (common/json.h); but nobody may end a watch
 * by storing one. They become U+FFFD.
 */
#ifndef COXSWAIN_KUBE_NUL_CHARACTERS_H
#define COXSWAIN_KUBE_NUL_CHARACTERS_H

#include "common/buffer.h"

void nul_characters_replace(struct buffer *text);

#endif
