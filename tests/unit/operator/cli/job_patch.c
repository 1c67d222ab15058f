/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_patch.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/cli/job_json.h"

static void expect(const char *wanted_text, const char *present_text, const char *patch_text)
{
    SCOPED_JSON *wanted = json_of(wanted_text), *present = json_of(present_text), *expected = json_of(patch_text);
    SCOPED_JSON *patch = job_patch(wanted, present);
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    json_print(patch, &text, NULL);
    cr_expect(json_equal(patch, expected), "%s", buffer_text(&text));
}

Test(job_patch, what_was_left_out_is_asked_to_have_its_default)
{
    expect("{'spec':{'coxswain':{'training':{'steps':5,'optimizer':{'type':'SGD'}}},'parameterServers':{}}}",
           "{'spec':{'image':'a','coxswain':{'training':{'steps':5,'seed':'1','optimizer':{'type':'SGD','momentum':'0."
           "9'}}},"
           "'parameterServers':{'replicas':2}}}",
           "{'spec':{'image':null,'coxswain':{'training':{'steps':5,'seed':null,'optimizer':{'type':'SGD','momentum':"
           "null}}},"
           "'parameterServers':{'replicas':null}}}");
}

Test(job_patch, but_not_what_others_may_have_changed)
{
    expect("{'spec':{}}", "{'spec':{'suspend':true,'workers':{'replicas':3},'runPolicy':{'backoffLimit':6}}}",
           "{'spec':{'runPolicy':{'backoffLimit':null}}}");
    expect("{'spec':{'runPolicy':{'backoffLimit':2}}}",
           "{'spec':{'runPolicy':{'activeDeadlineSeconds':60,'cleanPodPolicy':'None'}}}",
           "{'spec':{'runPolicy':{'backoffLimit':2,'cleanPodPolicy':null}}}");
}

Test(job_patch, all_else_is_as_it_is_written)
{
    expect("{'metadata':{'name':'a'},'spec':{'image':'b'}}",
           "{'metadata':{'name':'a','uid':'u'},'spec':{'image':'c'},'status':{'workers':2}}",
           "{'metadata':{'name':'a'},'spec':{'image':'b'}}");
}

Test(job_patch, a_sweep_keeps_what_may_change_and_asks_for_the_defaults_of_the_rest)
{
    expect(
        "{'kind':'TrainingSweep','spec':{'template':{'a':1},'maxTrials':4}}",
        "{'kind':'TrainingSweep','spec':{'template':{'a':1,'b':2},'suspend':true,'parallelism':3,'objective':{'metric':"
        "'loss'}}}",
        "{'kind':'TrainingSweep','spec':{'template':{'a':1,'b':null},'maxTrials':4,'objective':null}}");
}

Test(job_patch, a_class_loses_what_the_file_does_not_say)
{
    expect(
        "{'kind':'TrainingClass','spec':{'runPolicy':{'ttlSecondsAfterFinished':9}}}",
        "{'kind':'TrainingClass','spec':{'image':'a','runPolicy':{'ttlSecondsAfterFinished':8,'activeDeadlineSeconds':"
        "7}"
        "}}",
        "{'kind':'TrainingClass','spec':{'image':null,'runPolicy':{'ttlSecondsAfterFinished':9,'activeDeadlineSeconds':"
        "null}}}");
}

Test(job_patch, lists_that_are_the_same_are_left_out)
{
    expect("{'spec':{'a':{'b':[{'c':null}],'d':[1]},'e':[]}}", "{'spec':{'a':{'b':[{'c':null}],'d':[2]},'e':[]}}",
           "{'spec':{'a':{'d':[1]}}}");
}
