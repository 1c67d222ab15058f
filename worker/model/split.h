/* SPDX-License-Identifier: Apache-2.0
 *
 * A dense layer whose `devices` are given stands in the graph as slices: dense
 * layers of some of its units each, "<name>#0" and so on, on those devices, then a
 * layer of its own name that puts their outputs together. Parameters keep the names,
 * shapes and order that they have in the whole layer.
 */
#ifndef COXSWAIN_MODEL_SPLIT_H
#define COXSWAIN_MODEL_SPLIT_H

#include "worker/model/preset.h"

/* Replaces the description's layers; what is new comes from `arena`. ERROR_INVALID names a layer that cannot be split. */
int model_split_layers(struct arena *arena, struct model_description *description, struct error *error);

#endif
