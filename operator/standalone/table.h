/* SPDX-License-Identifier: Apache-2.0
 *
 * meta.k8s.io/v1 Tables: what kubectl get prints. Built-in types have columns in
 * a table of their own, custom types those of additionalPrinterColumns.
 */
#ifndef COXSWAIN_STANDALONE_TABLE_H
#define COXSWAIN_STANDALONE_TABLE_H

#include "operator/standalone/resource.h"

enum table_include { TABLE_INCLUDE_METADATA, TABLE_INCLUDE_OBJECT, TABLE_INCLUDE_NONE };

/* A table with its columns and no rows. */
struct json *table_new(const struct resource *resource);
/* `now_ms`: ages are counted from here. The object is copied as far as `include` says. */
void table_add_row(struct json *table, const struct resource *resource, const struct json *object,
                   enum table_include include, int64_t now_ms);

#endif
