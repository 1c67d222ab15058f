/* SPDX-License-Identifier: Apache-2.0
 *
 * The release that every program's --version prints.
 */
#ifndef COXSWAIN_COMMON_VERSION_H
#define COXSWAIN_COMMON_VERSION_H

#define COXSWAIN_VERSION "0.1.0"

#endif
