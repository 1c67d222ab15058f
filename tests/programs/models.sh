# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # for whoever sources this
#
# Small models that together have every type of layer, as the field `model` of a job has them. They read images of 28x28 or texts.

# Every kind of layer over images, with windows that do not fill their image, and paddings beyond the kernel.
images_layers='{inputShape: [28, 28, 1], layers: [{type: Conv2D, filters: 6, kernel: 5, stride: 2, padding: 3}, {type: Tanh},
  {type: AveragePool, size: 3, stride: 2, padding: 1}, {type: Conv2D, filters: 8, kernel: 3, padding: 4, bias: false}, {type: BatchNorm},
  {name: rectified, type: ReLU}, {name: largest, type: MaxPool, size: 3, stride: 2, padding: 1},
  {name: short, type: Shortcut, filters: 12, stride: 2}, {name: long, type: Conv2D, filters: 12, kernel: 2, stride: 2, padding: 1, inputs: [largest]},
  {name: all, type: Concat, inputs: [short, long]}, {name: flat, type: Flatten}, {name: mean, type: GlobalAveragePool, inputs: [rectified]},
  {type: Concat, inputs: [flat, mean]}, {type: Dropout, rate: 0.3}, {type: Dense, units: 32}, {type: LayerNorm}, {name: bent, type: GELU},
  {name: dense, type: Dense, units: 32}, {type: Add, inputs: [bent, dense]}, {type: Dense, units: 10}]}'
small_gpt='{preset: gpt-bytes, width: 32, depth: 2, heads: 4, context: 24, dropout: 0.2}'
tied='{inputShape: [16], layers: [{name: words, type: Embedding, size: 256, units: 12}, {type: Dense, units: 36},
  {type: Attention, heads: 3}, {type: LayerNorm}, {type: Dense, units: 256, weightsOf: words, bias: false}]}'
small_resnet='{preset: resnet20, depth: 1, width: 4, inputShape: [28, 28, 1]}'
