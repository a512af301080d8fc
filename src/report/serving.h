/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers of what serve-plan found. Internal to src/report. Each gives TN_IO where writing fails.
 */
#ifndef TN_REPORT_SERVING_H
#define TN_REPORT_SERVING_H

#include "report/printer.h"
#include "serve/serve.h"

/* What the engine itself said when it was started. */
struct tn_serve_check {
	char engine[48]; /* "vLLM 0.26.0" */
	bool started;    /* it went through to the end of its start */
	int64_t blocks, block_tokens, tokens;
	int64_t available_bytes; /* for its cache */
	int64_t planned_blocks;  /* ours, for that memory */
	int64_t planned_block_tokens;
	int64_t states, planned_states; /* SGLang: sequences with room for a state */
	bool tokens_alone;              /* available_bytes is what states left */
	bool agrees;
	char problem[256]; /* why there is no comparison, or why it stopped; "" */
};

struct tn_shown_serving {
	const struct tn_serving *serving;
	const struct tn_serve_request *asked; /* without the engine's defaults */
	const char *folder;
	const struct tn_serve_check *check; /* NULL: not asked for */
};

tn_status tn__serving_text(const struct tn_shown_serving *shown, struct tn_style style, FILE *out);
/* doc/format/serve-plan.schema.json. */
tn_status tn__serving_json(const struct tn_shown_serving *shown, FILE *out);

/* "does not start" and so on; the words of the JSON. */
const char *tn__serve_verdict_name(enum tn_serve_verdict verdict);
/* Why it does not start, in a sentence; "". */
const char *tn__serve_limit_text(const struct tn_serve_plan *plan, char text[192]);

#endif
