# SPDX-License-Identifier: Apache-2.0
"""Two processes of one thread under MultiWorkerMirroredStrategy, taking turns (turns.py): mirrored_tf.py MODEL"""
import json
import os
import sys

import turns

SIZE = 2
work = sys.argv[1]

if "TF_CONFIG" not in os.environ:
    workers = turns.free_addresses(SIZE)
    configurations = [{"cluster": {"worker": workers}, "task": {"type": "worker", "index": i}} for i in range(SIZE)]
    turns.Crew([([sys.executable, __file__, work], {"TF_CONFIG": json.dumps(c)}) for c in configurations]).serve()
else:
    import models_tf
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)  # a collective occupies one
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    share = models_tf.WORKS[work].batch // SIZE
    turns.serve(models_tf.stepper(work, share, strategy), share * models_tf.WORKS[work].units)
