/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/assets.h"

#include <string.h>

/* The assembler reads the files; the Makefile makes this file's object depend on them. */
#define PAGE "operator/cli/ui/"
#define EMBED(name, file)                                                                                              \
    __asm__(".pushsection .rodata\n"                                                                                   \
            "ui_" #name ":\n"                                                                                          \
            ".incbin \"" file "\"\n"                                                                                   \
            "ui_" #name "_end:\n"                                                                                      \
            ".byte 0\n"                                                                                                \
            ".popsection\n");                                                                                          \
    extern const char ui_##name[] __attribute__((visibility("hidden")));                                               \
    extern const char ui_##name##_end[] __attribute__((visibility("hidden")))

EMBED(html, PAGE "page.html");
EMBED(css, PAGE "page.css");
EMBED(script, PAGE "page.js");
EMBED(chart_library, "/usr/share/javascript/chart.js/chart.min.js"); /* Chart.js, MIT; its first lines say so */
EMBED(chart, PAGE "chart.js");
EMBED(sweep_chart, PAGE "sweep_chart.js");
EMBED(compare, PAGE "compare.js");
EMBED(layer_graph, PAGE "layer_graph.js");
EMBED(model, PAGE "model.js");
EMBED(timeline, PAGE "timeline.js");

const struct ui_asset *ui_asset_find(const char *path)
{
    static const struct ui_asset assets[] = {
        {"/", "text/html; charset=utf-8", ui_html, ui_html_end},
        {"/page.css", "text/css; charset=utf-8", ui_css, ui_css_end},
        {"/page.js", "text/javascript; charset=utf-8", ui_script, ui_script_end},
        {"/chart.min.js", "text/javascript; charset=utf-8", ui_chart_library, ui_chart_library_end},
        {"/chart.js", "text/javascript; charset=utf-8", ui_chart, ui_chart_end},
        {"/sweep_chart.js", "text/javascript; charset=utf-8", ui_sweep_chart, ui_sweep_chart_end},
        {"/compare.js", "text/javascript; charset=utf-8", ui_compare, ui_compare_end},
        {"/layer_graph.js", "text/javascript; charset=utf-8", ui_layer_graph, ui_layer_graph_end},
        {"/model.js", "text/javascript; charset=utf-8", ui_model, ui_model_end},
        {"/timeline.js", "text/javascript; charset=utf-8", ui_timeline, ui_timeline_end},
    };
    for (size_t i = 0; i < sizeof assets / sizeof *assets; i++)
        if (strcmp(assets[i].path, path) == 0)
            return &assets[i];
    return NULL;
}
