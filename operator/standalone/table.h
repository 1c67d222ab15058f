/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the meta.k8s.io/v1 Tables that the embedded control plane's API server returns
 * to `kubectl get`. The columns of built-in types are in table.c; those of custom types
 * are in their CustomResourceDefinition (additionalPrinterColumns).
 */
#ifndef COXSWAIN_STANDALONE_TABLE_H
#define COXSWAIN_STANDALONE_TABLE_H

#include "operator/standalone/resource.h"

enum table_include { TABLE_INCLUDE_METADATA, TABLE_INCLUDE_OBJECT, TABLE_INCLUDE_NONE };

/* Makes a table with columns and no rows. */
struct json *table_new(const struct resource *resource);
/* Adds a row for `object`, of which `include` says how much is copied. Ages are relative to
 * `now_ms`. */
void table_add_row(struct json *table, const struct resource *resource, const struct json *object,
                   enum table_include include, int64_t now_ms);

#endif
