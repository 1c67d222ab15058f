/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits dense layers over devices, for preset.c. A dense layer that the job gives several `devices` becomes
 * one dense layer per device with some of its units each, named "<name>#0" and so on, and a layer with its
 * own name that concatenates their outputs. Parameters keep the names, shapes and order that they have in the
 * unsplit layer.
 */
#ifndef COXSWAIN_MODEL_SPLIT_H
#define COXSWAIN_MODEL_SPLIT_H

#include "worker/model/preset.h"

/* Replaces the description's layers; new ones are allocated in `arena`. ERROR_INVALID names a
 * layer that cannot be split. */
int model_split_layers(struct arena *arena, struct model_description *description, struct error *error);

#endif
