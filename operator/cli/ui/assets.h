/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the page of `cox ui`, which the build puts into the program: page.html, page.css, page.js, chart.js,
 * sweep_chart.js, compare.js, layer_graph.js, model.js, timeline.js, and Chart.js (chart.min.js) from the system.
 */
#ifndef COXSWAIN_CLI_UI_ASSETS_H
#define COXSWAIN_CLI_UI_ASSETS_H

struct ui_asset {
    const char *path, *content_type; /* path: as the browser asks for it */
    const char *bytes, *end;         /* not terminated */
};

/* Returns the file with this path; NULL if there is none. */
const struct ui_asset *ui_asset_find(const char *path);

#endif
