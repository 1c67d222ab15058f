# SPDX-License-Identifier: Apache-2.0
"""Tells Katib's database manager a metric of each trial, as a training program would: katib_report.py PROTO ADDRESS NAMESPACE.

PROTO is the file with the manager's messages. KWOK's pods run nothing, so a trial's metric is told as soon as its pod is there.
"""
import datetime
import os
import subprocess
import sys

import grpc

proto, address, namespace = sys.argv[1:]
sys.path.append(os.path.dirname(proto))
messages, services = grpc.protos_and_services(os.path.basename(proto))
manager = services.DBManagerStub(grpc.insecure_channel(address))
told = set()
label = "katib.kubeflow.org/trial"
watch = ["kubectl", "--namespace", namespace, "get", "pods", "--selector", label, "--watch",
         "--output", "jsonpath={.metadata.labels.%s}{'\\n'}" % label.replace(".", "\\.")]
for line in subprocess.Popen(watch, stdout=subprocess.PIPE, text=True).stdout:
    trial = line.strip()
    if trial in told:
        continue
    told.add(trial)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    entry = messages.MetricLog(time_stamp=now, metric=messages.Metric(name="score", value="0.5"))
    manager.ReportObservationLog(messages.ReportObservationLogRequest(
        trial_name=trial, observation_log=messages.ObservationLog(metric_logs=[entry])), wait_for_ready=True, timeout=30)
