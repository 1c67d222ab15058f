/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_TESTS_RESNET_IN_GROUPS_H
#define COXSWAIN_TESTS_RESNET_IN_GROUPS_H

/* Returns a model as JSON, to be freed: ResNet-20 (He et al. 2016), narrow: the stem, three groups of three blocks, the head; 70
 * layers in `stages` groups of equal size, each on a device of its own. */
char *resnet_in_groups(unsigned stages);

#endif
