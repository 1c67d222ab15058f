/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "operator/cli/command.h"

static const char usage[] =
    "usage: cox completion bash|zsh\n"
    "\n"
    "Prints a script that completes commands, options and the names of jobs. For the running shell:\n"
    "  source <(cox completion bash)\n"
    "for every one, in bash with bash-completion, in zsh with a folder of $fpath:\n"
    "  cox completion bash >~/.local/share/bash-completion/completions/cox\n"
    "  cox completion zsh >~/.zfunc/_cox\n"
    "\n"
    "Exit code: 0 printed, 2 wrong usage.\n";

/* Options that take an argument are told from the manual: their line says "--name WORD". */
static const char bash[] =
    "_cox() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]:-}\n"
    "    local cluster=() i\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$_cox_commands\" -- \"$word\")\n"
    "        return\n"
    "    fi\n"
    "    case $before in\n"
    "    -o | --output) mapfile -t COMPREPLY < <(compgen -W 'wide json yaml name' -- \"$word\"); return ;;\n"
    "    --role) mapfile -t COMPREPLY < <(compgen -W 'chief worker ps evaluator' -- \"$word\"); return ;;\n"
    "    --for) mapfile -t COMPREPLY < <(compgen -W 'Succeeded Failed Running Suspended Deleted' -- \"$word\"); return "
    ";;\n"
    "    --kubeconfig | --state) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n"
    "    esac\n"
    "    if [[ $word == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$(cox \"$command\" --help | grep -oE -- '^  (-[a-zA-Z], "
    ")?--[a-z-]+' |\n"
    "            grep -oE -- '--[a-z-]+')\" -- \"$word\")\n"
    "        return\n"
    "    fi\n"
    "    case $command in\n"
    "    run) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n"
    "    completion) mapfile -t COMPREPLY < <(compgen -W 'bash zsh' -- \"$word\"); return ;;\n"
    "    demo | help) return ;;\n"
    "    esac\n"
    "    for ((i = 2; i + 1 < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        -n | --namespace | --kubeconfig | --context) cluster+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i+1]}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$(cox get -o name \"${cluster[@]}\" 2>/dev/null | sed 's|.*/||')\" -- "
    "\"$word\")\n"
    "}\n"
    "complete -F _cox cox\n";

static void print_commands(void)
{
    static const char *const names[] = {
#define X(name, arguments, summary) #name,
        COMMANDS(X)
#undef X
    };
    fputs("_cox_commands='help", stdout);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf(" %s", names[i]);
    fputs("'\n", stdout);
}

/* zsh runs the function of bash, in the emulation that it has for this. */
int command_completion(int count, char **words)
{
    bool help = count > 1 && strcmp(words[1], "--help") == 0;
    bool zsh = count == 2 && strcmp(words[1], "zsh") == 0;
    if (help || count != 2 || (!zsh && strcmp(words[1], "bash") != 0))
        return command_usage(help, usage);
    if (zsh)
        fputs("#compdef cox\nautoload -U +X bashcompinit && bashcompinit\n", stdout);
    print_commands();
    fputs(bash, stdout);
    return 0;
}
