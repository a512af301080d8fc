/* SPDX-License-Identifier: Apache-2.0
 *
 * The screen of serve-plan.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/figure.h"
#include "report/serving.h"

#define COLUMN 12

const char *
tn__serve_verdict_name(enum tn_serve_verdict verdict)
{
	static const char *const names[] = { "undecided", "starts", "narrow", "does_not_start" };
	return names[verdict];
}

static const char *
engine_name(enum tn_engine engine)
{
	return tn__engine_words(engine)->title;
}

const char *
tn__serve_limit_text(const struct tn_serve_plan *plan, char text[192])
{
	char first[32], second[32], third[32];
	const struct tn_serve_request *request = &plan->request;
	text[0] = '\0';
	switch (plan->limit) {
	case TN_SERVE_LIMIT_UTILIZATION:
		snprintf(text, 192, "%.4g of the card is %s; %s are free beside the CUDA context", request->utilization,
		         tn__human_bytes(plan->requested_bytes, first),
		         tn__human_bytes(plan->total_bytes - plan->context_bytes, second));
		break;
	case TN_SERVE_LIMIT_WEIGHTS:
		snprintf(text, 192, "weights take %s, activations and libraries the rest of %s: nothing is left for the cache",
		         tn__human_bytes(plan->weights.bytes, first), tn__human_bytes(plan->requested_bytes, second));
		break;
	case TN_SERVE_LIMIT_LENGTH:
		snprintf(text, 192, "one sequence of %s tokens needs %s of cache; there are %s",
		         tn__grouped(request->max_model_len, first), tn__human_bytes(plan->needed_bytes, second),
		         tn__human_bytes(plan->available.bytes, third));
		break;
	case TN_SERVE_LIMIT_CONCURRENCY:
		snprintf(text, 192, "%.2f sequences of %s tokens fit, %" PRId64 " are wanted", plan->sequences,
		         tn__grouped(request->max_model_len, first), request->concurrency);
		break;
	default:
		snprintf(text, 192, "%s", plan->reason);
		break;
	}
	return text;
}

static void
say_head(const struct tn_printer *printer, const struct tn_shown_serving *shown)
{
	static const char *const words[] = { "Undecided", "Starts", "Undecided by a narrow margin", "Does not start" };
	const struct tn_serve_plan *plan = &shown->serving->plan;
	char card[160] = "", limit[192];
	enum tn_tint tint = plan->verdict == TN_SERVE_STARTS  ? TN_TINT_GOOD
	                    : plan->verdict == TN_SERVE_FAILS ? TN_TINT_BAD
	                                                      : TN_TINT_STRONG;
	if (plan->request.gpu != NULL)
		snprintf(card, sizeof(card), " on %s", plan->request.gpu->figures.name);
	if (plan->request.gpu != NULL && plan->request.gpus > 1)
		snprintf(card, sizeof(card), " on %d x %s", plan->request.gpus, plan->request.gpu->figures.name);
	if (plan->request.gpu == NULL && plan->reason[0] == '\0')
		tn__say(printer, TN_TINT_STRONG, 0, "%s: no card was named (--gpu); what does not depend on one",
		        shown->serving->model.architecture);
	else
		tn__say(printer, tint, 0, "%s%s (%s)", words[plan->verdict], card, engine_name(plan->request.engine));
	tn__serve_limit_text(plan, limit);
	if (limit[0] != '\0')
		tn__say(printer, TN_TINT_NONE, 2, "%s", limit);
}

/* "3.10 to 4.20; model of the profile run". */
static void
say_figure(const struct tn_printer *printer, const char *name, const struct tn_serve_figure *figure, int64_t total,
           const char *more)
{
	char lowest[32], highest[32], remark[160];
	if (figure->lowest == figure->highest)
		snprintf(remark, sizeof(remark), "%s", more);
	else
		snprintf(remark, sizeof(remark), "%s to %s%s%s",
		         tn__human_bytes(figure->lowest > 0 ? figure->lowest : 0, lowest),
		         tn__human_bytes(figure->highest, highest), more[0] != '\0' ? "; " : "", more);
	tn__say_row(printer, name, figure->bytes > 0 ? figure->bytes : 0, total, remark);
}

static void
say_memory(const struct tn_printer *printer, const struct tn_serve_plan *plan)
{
	char title[64], bytes[32];
	int64_t total = plan->requested_bytes > 0 ? plan->requested_bytes : plan->weights.bytes;
	if (plan->weights.bytes <= 0 && plan->requested_bytes <= 0)
		return;
	snprintf(title, sizeof(title), plan->request.gpus > 1 ? "On each of %d cards" : "On the card", plan->request.gpus);
	fputc('\n', printer->out);
	tn__say_table_head(printer, title, "GiB");
	if (plan->weights.bytes > 0)
		say_figure(printer, "weights", &plan->weights, total, plan->weights.source);
	say_figure(printer, "activations", &plan->activations, total, "model");
	say_figure(printer, "libraries", &plan->other, total, "from published logs");
	if (plan->graphs_counted && plan->graphs.highest > 0)
		say_figure(printer, "CUDA graphs", &plan->graphs, total, "from published logs");
	if (plan->requested_bytes <= 0 && plan->request.cache_bytes <= 0)
		return;
	say_figure(printer, "KV cache", &plan->available, total,
	           plan->request.cache_bytes > 0 ? "as asked" : "what is left");
	if (plan->request.cache_bytes <= 0)
		tn__say(printer, TN_TINT_DIM, 4, "%s are what the engine takes of the card: %.4g of %.2f GiB",
		        tn__human_bytes(plan->requested_bytes, bytes), plan->request.utilization,
		        (double)plan->total_bytes / (1 << 30));
}

static const char *
kind_name(const struct tn_cache_layers *kind)
{
	static const char *const names[] = { "with a state", "that see all tokens", "with a window", "that see a chunk",
		                                 "with a latent (MLA)" };
	return names[kind->cache];
}

static void
say_cache(const struct tn_printer *printer, const struct tn_serve_plan *plan)
{
	const struct tn_cache_layout *layout = &plan->layout;
	char number[32], bytes[32];
	if (layout->block_bytes == 0)
		return;
	fputc('\n', printer->out);
	tn__say_labelled(printer, "Cache", COLUMN, "%s bytes a token%s", tn__grouped(layout->token_bytes, number),
	                 plan->cache.number_bytes == 1 ? ", 8 bits a number" : "");
	for (int i = 0; i < layout->kind_count; i++) {
		const struct tn_cache_layers *kind = &layout->kinds[i];
		if (kind->cache == TN_CACHE_NONE)
			tn__say_labelled(printer, "", COLUMN, "%d layers %s: %s a sequence together", kind->layers, kind_name(kind),
			                 tn__human_bytes(layout->state_bytes, bytes));
		else if (kind->window > 0)
			tn__say_labelled(printer, "", COLUMN, "%d layers %s of %s tokens: %" PRId64 " bytes a token each",
			                 kind->layers, kind_name(kind), tn__grouped(kind->window, number), kind->token_bytes);
		else
			tn__say_labelled(printer, "", COLUMN, "%d layers %s: %" PRId64 " bytes a token each", kind->layers,
			                 kind_name(kind), kind->token_bytes);
	}
	if (tn__engine_words(plan->request.engine)->blocks)
		tn__say_labelled(printer, "", COLUMN, "a block is %s tokens, %s", tn__grouped(layout->block_tokens, number),
		                 tn__human_bytes(layout->block_bytes, bytes));
}

static void
say_blocks(const struct tn_printer *printer, const struct tn_serve_plan *plan)
{
	char blocks[32], lowest[32], highest[32], tokens[32], needed[32], bytes[32];
	if (!tn__engine_words(plan->request.engine)->blocks) {
		tn__say_labelled(printer, "Holds", COLUMN, "%s tokens (%s to %s)", tn__grouped(plan->tokens, tokens),
		                 tn__grouped(plan->lowest_blocks, lowest), tn__grouped(plan->highest_blocks, highest));
		return;
	}
	if (plan->lowest_blocks == plan->highest_blocks)
		tn__say_labelled(printer, "Holds", COLUMN, "%s blocks: %s tokens", tn__grouped(plan->blocks, blocks),
		                 tn__grouped(plan->tokens, tokens));
	else
		tn__say_labelled(printer, "Holds", COLUMN, "%s blocks (%s to %s): %s tokens", tn__grouped(plan->blocks, blocks),
		                 tn__grouped(plan->lowest_blocks, lowest), tn__grouped(plan->highest_blocks, highest),
		                 tn__grouped(plan->tokens, tokens));
	tn__say_labelled(printer, "", COLUMN, "one sequence of %s tokens needs %s blocks, %s",
	                 tn__grouped(plan->request.max_model_len, tokens), tn__grouped(plan->needed_blocks, needed),
	                 tn__human_bytes(plan->needed_bytes, bytes));
}

static void
say_capacity(const struct tn_printer *printer, const struct tn_serve_plan *plan)
{
	char tokens[32];
	if (plan->available.source == NULL || plan->available.bytes <= 0)
		return;
	say_blocks(printer, plan);
	tn__say_labelled(printer, "At once", COLUMN, "%.2f sequences of %s tokens", plan->sequences,
	                 tn__grouped(plan->request.max_model_len, tokens));
	tn__say_labelled(printer, "Longest", COLUMN, "%s tokens, alone", tn__grouped(plan->longest, tokens));
}

static void
say_cards(const struct tn_printer *printer, const struct tn_serving *serving)
{
	bool first = true;
	for (int i = 0; i < serving->degree_count; i++) {
		const struct tn_serve_option *option = &serving->degrees[i];
		if (option->verdict == TN_SERVE_UNDECIDED)
			continue;
		if (option->verdict == TN_SERVE_STARTS)
			tn__say_labelled(printer, first ? "Cards" : "", COLUMN, "%d: starts, %.2f sequences at once", option->gpus,
			                 option->sequences);
		else
			tn__say_labelled(printer, first ? "Cards" : "", COLUMN, "%d: %s", option->gpus,
			                 option->verdict == TN_SERVE_NARROW ? "perhaps" : "does not start");
		first = false;
	}
	if (serving->smallest.gpu != NULL)
		tn__say_labelled(printer, first ? "Cards" : "", COLUMN, "the smallest that starts it alone: %s (%s)",
		                 serving->smallest.gpu->figures.name, serving->smallest.gpu->figures.alias);
}

static void
say_changes(const struct tn_printer *printer, const struct tn_serving *serving)
{
	for (int i = 0; i < serving->change_count; i++) {
		const struct tn_serve_change *change = &serving->changes[i];
		tn__say_labelled(printer, i == 0 ? "Change" : "", COLUMN, "%s%s%s: %s", change->option,
		                 change->value[0] != '\0' ? " " : "", change->value, change->effect);
	}
	if (serving->change_count > 1)
		tn__say_labelled(printer, "", COLUMN, "(each of them is enough by itself)");
}

static void
say_commands(const struct tn_printer *printer, const struct tn_shown_serving *shown)
{
	char text[1024];
	for (int engine = 0; engine < TN_ENGINES; engine++)
		if (shown->serving->plan.verdict == TN_SERVE_STARTS && shown->serving->starts[engine]) {
			tn__serve_command(shown->asked, shown->folder, (enum tn_engine)engine, text, sizeof(text));
			tn__say_labelled(printer, engine_name((enum tn_engine)engine), COLUMN, "%s", text);
		}
}

static void
say_check(const struct tn_printer *printer, const struct tn_serve_plan *plan, const struct tn_serve_check *check)
{
	char first[32], second[32], bytes[32];
	if (check == NULL)
		return;
	fputc('\n', printer->out);
	if (check->blocks <= 0) {
		tn__say_labelled(printer, "Verified", COLUMN, "no: %s", check->problem);
		return;
	}
	char unit[48] = "tokens";
	if (tn__engine_words(plan->request.engine)->blocks)
		snprintf(unit, sizeof(unit), "blocks of %" PRId64 " tokens", check->block_tokens);
	tn__say_labelled(printer, "Verified", COLUMN, "%s on the virtual card: %s %s in %s; planned for that memory: %s%s",
	                 check->engine, tn__grouped(check->blocks, first), unit,
	                 tn__human_bytes(check->available_bytes, bytes), tn__grouped(check->planned_blocks, second),
	                 check->agrees ? ", the same" : ": THEY DIFFER");
	tn__say_labelled(printer, "", COLUMN, "planned without starting it: %s for the cache (%s to %s)",
	                 tn__human_bytes(plan->available.bytes, bytes),
	                 tn__human_bytes(plan->available.lowest > 0 ? plan->available.lowest : 0, first),
	                 tn__human_bytes(plan->available.highest, second));
	if (check->problem[0] != '\0')
		tn__say_labelled(printer, "", COLUMN, "%s", check->problem);
}

static void
say_notes(const struct tn_printer *printer, const struct tn_serving *serving)
{
	const struct tn_served_model *model = &serving->model;
	fputc('\n', printer->out);
	for (int i = 0; i < model->note_count; i++)
		tn__say(printer, TN_TINT_DIM, 2, "%s", model->notes[i]);
	if (serving->weights.problem[0] != '\0' && strstr(serving->plan.reason, serving->weights.problem) == NULL)
		tn__say(printer, TN_TINT_DIM, 2, "%s", serving->weights.problem);
	if (serving->plan.request.gpus > 1)
		tn__say(printer, TN_TINT_DIM, 2, "what NCCL takes lies beside what is requested of the card");
	tn__say(printer, TN_TINT_DIM, 2, "by the rules of %s %s; other releases differ",
	        engine_name(serving->plan.request.engine), tn__engine_words(serving->plan.request.engine)->version);
}

tn_status
tn__serving_text(const struct tn_shown_serving *shown, struct tn_style style, FILE *out)
{
	const struct tn_printer printer = { .out = out, .style = style };
	say_head(&printer, shown);
	say_memory(&printer, &shown->serving->plan);
	say_cache(&printer, &shown->serving->plan);
	say_capacity(&printer, &shown->serving->plan);
	fputc('\n', out);
	say_cards(&printer, shown->serving);
	say_changes(&printer, shown->serving);
	say_commands(&printer, shown);
	say_check(&printer, &shown->serving->plan, shown->check);
	say_notes(&printer, shown->serving);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "writing failed: %s", strerror(errno));
	return TN_OK;
}
