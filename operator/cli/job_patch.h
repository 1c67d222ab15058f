/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the merge patch with which `cox run` brings an existing job or sweep to what its manifest says. A
 * merge patch keeps fields that it does not name, so a field removed from the manifest would silently stay.
 * For immutable fields of spec the patch therefore contains null, which asks for the default; the API server
 * refuses the patch if the job has another value. Mutable fields (suspend, workers) that the manifest omits
 * are kept, since somebody may have set them after creation. Lists that are the same are left out. Of a
 * training class all fields that the manifest omits are removed.
 */
#ifndef COXSWAIN_CLI_JOB_PATCH_H
#define COXSWAIN_CLI_JOB_PATCH_H

#include "common/json.h"

/* Returns the patch from `present`, the job in the API server, to `wanted`, the job in the
 * manifest. Free it with json_free. */
struct json *job_patch(const struct json *wanted, const struct json *present);

#endif
