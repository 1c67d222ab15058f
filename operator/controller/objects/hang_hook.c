/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/hang_hook.h"

#include "common/job/template_overlay.h"

/* Runs with sh of Debian, BusyBox and others. /proc/…/stack can be read only by root with CAP_SYS_ADMIN; wchan and syscall also by the
 * user of the process. common/python_stack.c reads the lines that it writes. */
static const char script[] =
    "{\n"
    "if command -v py-spy >/dev/null && timeout 5 py-spy dump --nonblocking --pid 1; then :\n"
    "elif command -v gdb >/dev/null && timeout 10 gdb -p 1 -batch -ex bt | grep '^#'; then :\n"
    "else\n"
    "  n=0\n"
    "  for f in /proc/[0-9]*/task/*; do\n"
    "    p=${f#/proc/} p=${p%%/*} name='' state='' where='' call='' stack=''\n"
    "    [ \"$p\" -lt $$ ] || continue\n"
    "    n=$((n + 1))\n"
    "    [ $n -le 12 ] || break\n"
    "    read -r name <\"$f/comm\"\n"
    "    while read -r key value; do if [ \"$key\" = State: ]; then state=$value; fi; done <\"$f/status\"\n"
    "    read -r where <\"$f/wchan\"\n"
    "    read -r call _ <\"$f/syscall\"\n"
    "    if [ -r \"$f/stack\" ]; then while read -r _ value; do stack=\"$stack${stack:+ < }${value%%+*}\"; done "
    "<\"$f/stack\"; fi\n"
    "    echo \"process $p, thread ${f##*/} ($name): ${state:-?} at ${stack:-${where:-?}}, system call ${call:-?}\"\n"
    "  done\n"
    "fi\n"
    "} 2>/dev/null | head -c 1200 >/proc/1/fd/1\n";

void hang_hook_add(struct json *container, const struct training_job *job, enum role role)
{
    const struct json *template = job->roles[role].template;
    bool own = json_at(template_main_container(template), "lifecycle.preStop") != NULL;
    bool shared = json_boolean_at(template, "spec.shareProcessNamespace", false) ||
                  json_boolean_at(template, "spec.hostPID", false);
    if (job->framework == FRAMEWORK_COXSWAIN || job->run_policy.progress_deadline_seconds == FIELD_UNSET || own ||
        shared)
        return;
    struct json *exec = json_set_object(json_set_object(json_set_object(container, "lifecycle"), "preStop"), "exec");
    struct json *command = json_set_array(exec, "command");
    json_append_string(command, "sh");
    json_append_string(command, "-c");
    json_append_string(command, script);
}
