/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects for tests of what prints them, written with ' for ".
 */
#ifndef TESTS_CLI_JOB_JSON_H
#define TESTS_CLI_JOB_JSON_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"

static inline struct json *json_of(const char *quoted)
{
    static char text[16384];
    struct json *value = NULL;
    struct error error = ERROR_INIT;
    cr_assert_lt(strlen(quoted), sizeof text);
    snprintf(text, sizeof text, "%s", quoted);
    for (char *at = text; *at; at++)
        if (*at == '\'')
            *at = '"';
    cr_assert_eq(json_parse(text, strlen(text), sizeof text, &value, &error), 0, "%s", error.message);
    return value;
}

/* 2026-11-20T14:01:00Z */
#define JOB_NOW 1795183260000

#define JOB_RUNNING                                                                                                    \
    "{'apiVersion':'coxswain.dev/v1beta1','kind':'TrainingJob','metadata':{'name':'digits','namespace':'ml','uid':"    \
    "'u-1','creationTimestamp':'2026-11-20T14:00:00Z'},'spec':{'workers':{'replicas':2},"                              \
    "'coxswain':{'strategy':{'type':'MultiWorkerMirrored'}},'runPolicy':{'backoffLimit':6}},'status':{'readySummary':" \
    "'2/"                                                                                                              \
    "2','controllerState':{'attempt':1,'incarnation':2},'restarts':{'total':1,'failures':0,'disruptions':1,'"          \
    "outOfMemory':0},"                                                                                                 \
    "'startTime':'2026-11-20T14:00:00.250000Z','conditions':[{'type':'Running','status':'True','reason':'"             \
    "CrewComplete',"                                                                                                   \
    "'message':'all required pods are ready','lastTransitionTime':'2026-11-20T14:00:30Z'}],'progress':{'step':120,"    \
    "'totalSteps':300,'examplesPerSecond':'5123.4','secondsRemaining':35,'metrics':[{'name':'loss','value':"           \
    "'0.031'}]}}}"

#endif
