/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the release that every program prints for --version, and that a worker names if another worker speaks another protocol version.
 */
#ifndef COXSWAIN_COMMON_VERSION_H
#define COXSWAIN_COMMON_VERSION_H

#define COXSWAIN_VERSION "0.1.0"

#endif
