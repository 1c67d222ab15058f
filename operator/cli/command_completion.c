/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/job/enum_words.h"
#include "operator/cli/command.h"
#include "operator/cli/job_setting.h"

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

/* Options are those of the command's manual, jobs those of the cluster that the line names so far, and what --set takes is
 * every field of a job. */
static const char bash[] =
    "_cox() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]:-}\n"
    "    local cluster=() list=get forms='wide json yaml name' i\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$_cox_commands\" -- \"$word\")\n"
    "        return\n"
    "    fi\n"
    "    if [[ $command == sweep ]]; then list='sweep get' forms='csv json yaml name'; fi\n"
    "    case $command in runs | predict | generate-text) list=runs forms='wide json name' ;; esac\n"
    "    if [[ $command == runs ]] && ((COMP_CWORD == 2)) && [[ $word != -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W 'delete prune compare' -- \"$word\")\n"
    "        return\n"
    "    fi\n"
    "    if [[ $command == sweep ]] && ((COMP_CWORD == 2)); then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$_cox_sweep_commands\" -- \"$word\")\n"
    "        return\n"
    "    fi\n"
    "    if [[ \"$command ${COMP_WORDS[2]:-}\" == 'sweep run' ]]; then command=run; fi\n"
    "    case $before in\n"
    "    -o | --output) mapfile -t COMPREPLY < <(compgen -W \"$forms\" -- \"$word\"); return ;;\n"
    "    --role) mapfile -t COMPREPLY < <(compgen -W 'chief worker ps evaluator' -- \"$word\"); return ;;\n"
    "    --for) mapfile -t COMPREPLY < <(compgen -W 'Succeeded Complete Failed Running Suspended Deleted' -- "
    "\"$word\"); return "
    ";;\n"
    "    --strategy) mapfile -t COMPREPLY < <(compgen -W \"$_cox_strategies\" -- \"$word\"); return ;;\n"
    "    --model) mapfile -t COMPREPLY < <(compgen -W \"$_cox_models\" -- \"$word\"); return ;;\n"
    "    --format) mapfile -t COMPREPLY < <(compgen -W \"$_cox_formats\" -- \"$word\"); return ;;\n"
    "    --weights) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n"
    "    --data) mapfile -t COMPREPLY < <(compgen $([[ $command == predict ]] && echo -f || echo -d) -- "
    "\"$word\"); return ;;\n"
    "    --kubeconfig | --state) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n"
    "    --set) compopt -o nospace 2>/dev/null; mapfile -t COMPREPLY < <(compgen -W \"$_cox_fields\" -S = -- "
    "\"$word\")\n"
    "        return ;;\n"
    "    esac\n"
    "    if [[ $word == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$(cox \"$command\" --help | grep -oE -- '^  (-[a-zA-Z], "
    ")?--[a-z-]+' |\n"
    "            grep -oE -- '--[a-z-]+')\" -- \"$word\")\n"
    "        return\n"
    "    fi\n"
    "    case $command in\n"
    "    run | migrate) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n"
    "    completion) mapfile -t COMPREPLY < <(compgen -W 'bash zsh' -- \"$word\"); return ;;\n"
    "    demo | generate | help | ui) return ;;\n"
    "    esac\n"
    "    for ((i = 2; i + 1 < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        -n | --namespace | --kubeconfig | --context) cluster+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i+1]}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$(cox $list -o name \"${cluster[@]}\" 2>/dev/null | sed 's|.*/||')\" "
    "-- \"$word\")\n"
    "}\n"
    "complete -F _cox cox\n";

static const char zsh[] =
    "_cox() {\n"
    "    local command=${words[2]} i\n"
    "    local -a cluster list=(get) forms=(wide json yaml name)\n"
    "    if ((CURRENT == 2)); then\n"
    "        _describe command _cox_commands\n"
    "        return\n"
    "    fi\n"
    "    if [[ $command == sweep ]]; then list=(sweep get) forms=(csv json yaml name); fi\n"
    "    case $command in runs | predict | generate-text) list=(runs) forms=(wide json name) ;; esac\n"
    "    if [[ $command == runs && ${words[CURRENT]} != -* ]] && ((CURRENT == 3)); then\n"
    "        compadd delete prune compare\n"
    "        return\n"
    "    fi\n"
    "    if [[ $command == sweep ]] && ((CURRENT == 3)); then\n"
    "        compadd -- ${=_cox_sweep_commands}\n"
    "        return\n"
    "    fi\n"
    "    if [[ \"$command ${words[3]}\" == 'sweep run' ]]; then command=run; fi\n"
    "    case ${words[CURRENT-1]} in\n"
    "    -o | --output) compadd $forms; return ;;\n"
    "    --role) compadd chief worker ps evaluator; return ;;\n"
    "    --for) compadd Succeeded Complete Failed Running Suspended Deleted; return ;;\n"
    "    --strategy) compadd -- ${=_cox_strategies}; return ;;\n"
    "    --model) compadd -- ${=_cox_models}; return ;;\n"
    "    --format) compadd -- ${=_cox_formats}; return ;;\n"
    "    --weights) _files; return ;;\n"
    "    --data) if [[ $command == predict ]]; then _files; else _files -/; fi; return ;;\n"
    "    --kubeconfig | --state) _files; return ;;\n"
    "    --set) compadd -S = -- ${=_cox_fields}; return ;;\n"
    "    esac\n"
    "    if [[ ${words[CURRENT]} == -* ]]; then\n"
    "        compadd -- ${(f)\"$(cox $command --help | grep -oE -- '^  (-[a-zA-Z], )?--[a-z-]+' | grep -oE -- "
    "'--[a-z-]+')\"}\n"
    "        return\n"
    "    fi\n"
    "    case $command in\n"
    "    run | migrate) _files; return ;;\n"
    "    completion) compadd bash zsh; return ;;\n"
    "    demo | generate | help | ui) return ;;\n"
    "    esac\n"
    "    for ((i = 3; i + 1 < CURRENT; i++)); do\n"
    "        case ${words[i]} in\n"
    "        -n | --namespace | --kubeconfig | --context) cluster+=(${words[i]} ${words[i+1]}) ;;\n"
    "        esac\n"
    "    done\n"
    "    compadd -- ${(f)\"$(cox $list -o name $cluster 2>/dev/null | sed 's|.*/||')\"}\n"
    "}\n"
    "if [[ ${funcstack[1]} == _cox ]]; then _cox \"$@\"; else compdef _cox cox; fi\n";

static const struct {
    const char *name, *summary;
} commands[] = {{"help", "list the commands"},
#define X(function, name, arguments, summary) {name, summary},
                COMMANDS(X)
#undef X
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void print_field(void *context, const char *path)
{
    (void)context;
    printf("%s ", path);
}

static void print_fields(void)
{
    fputs("_cox_fields='", stdout);
    job_setting_paths(print_field, NULL);
    puts("'");
}

static void print_words(const char *name, const char *const *words)
{
    printf("%s='", name);
    for (; *words; words++)
        if (**words)
            printf("%s ", *words);
    puts("'");
}

/* Prints the words that the shells' functions complete from. */
static void print_choices(void)
{
    print_fields();
    print_words("_cox_strategies", strategy_type_words);
    print_words("_cox_models", preset_words);
    print_words("_cox_formats", data_format_words);
    puts("_cox_sweep_commands='run get top best export stop resume'");
}

static void print_bash(void)
{
    fputs("_cox_commands='", stdout);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("%s%s", i > 0 ? " " : "", commands[i].name);
    puts("'");
    print_choices();
    fputs(bash, stdout);
}

static void print_zsh(void)
{
    puts("#compdef cox\n_cox_commands=(");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("    '%s:%s'\n", commands[i].name, commands[i].summary);
    puts(")");
    print_choices();
    fputs(zsh, stdout);
}

int command_completion(int count, char **words)
{
    bool help = count > 1 && strcmp(words[1], "--help") == 0;
    const char *shell = count == 2 ? words[1] : "";
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else
        return command_usage(help, usage);
    return 0;
}
