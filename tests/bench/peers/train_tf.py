# SPDX-License-Identifier: Apache-2.0
"""TensorFlow in one process, taking turns (turns.py): train_tf.py MODEL THREADS"""
import sys

import models_tf
import tensorflow as tf
import turns

work, threads = sys.argv[1], int(sys.argv[2])
tf.config.threading.set_intra_op_parallelism_threads(threads)
tf.config.threading.set_inter_op_parallelism_threads(threads)
given = models_tf.WORKS[work]
turns.serve(models_tf.stepper(work, given.batch, tf.distribute.get_strategy()), given.batch * given.units)
