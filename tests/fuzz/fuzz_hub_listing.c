/* SPDX-License-Identifier: Apache-2.0
 *
 * The hub's answer about a revision. The listed files have valid names, sizes and digests, and are not too many.
 */
#include <stdint.h>
#include <string.h>

#include "storage/fetch.h"
#include "storage/hub_listing.h"
#include "tests/fuzz/expect.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    struct hub_listing listing = {0};
    if (hub_listing_parse((const char *)bytes, length, &listing, &error) < 0) {
        expect(*error.message && (error.kind == ERROR_CORRUPT || error.kind == ERROR_TOO_LARGE));
        return 0;
    }
    expect(hub_is_digest(listing.commit, 40) && listing.count <= HUB_FILES_MAX);
    for (size_t i = 0; i < listing.count; i++)
        expect(fetch_path_is_safe(listing.files[i].path) && listing.files[i].size >= 0 &&
               hub_is_digest(listing.files[i].digest, listing.files[i].digest_kind == DIGEST_SHA256 ? 64 : 40));
    hub_listing_release(&listing);
    return 0;
}
