/* SPDX-License-Identifier: Apache-2.0 */
#include <grpc/slice.h>
#include <string.h>

#include "worker/comm/crew_key.h"
#include "worker/comm/rpc_parts.h"

#define PROOF_HEADER "coxswain-proof-bin" /* gRPC carries raw bytes in headers that end so */

unsigned rpc_proof_metadata(const char *method, grpc_metadata *ret_metadata)
{
    unsigned char proof[CREW_PROOF_BYTES];
    if (!crew_key_is_set())
        return 0;
    crew_key_prove("rpc", method, strlen(method), proof);
    *ret_metadata = (grpc_metadata){.key = grpc_slice_from_static_string(PROOF_HEADER),
                                    .value = grpc_slice_from_copied_buffer((const char *)proof, sizeof(proof))};
    return 1;
}

bool rpc_proof_holds(const char *method, const grpc_metadata_array *metadata)
{
    static const unsigned char none[CREW_PROOF_BYTES];
    const unsigned char *proof = none;
    for (size_t i = 0; i < metadata->count; i++)
        if (grpc_slice_str_cmp(metadata->metadata[i].key, PROOF_HEADER) == 0 &&
            GRPC_SLICE_LENGTH(metadata->metadata[i].value) == CREW_PROOF_BYTES)
            proof = GRPC_SLICE_START_PTR(metadata->metadata[i].value);
    return crew_key_accepts("rpc", method, strlen(method), proof);
}
