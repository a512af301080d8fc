/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue, or one card of it, as text and JSON; and a card as a row of the catalogue.
 */
#include "report/gpus.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/error.h"
#include "report/json_parts.h"
#include "gpu/catalogue.h"
#include "report/printer.h"

#define MIB (1 << 20)

/* ---- table ---- */

static void
write_line(FILE *out, const struct tn_gpu_row *row)
{
	const struct tn_gpu_figures *card = &row->figures;
	fprintf(out, "%-12s %-49s %4d.%d %7.2f GiB %4llu MiB  %s\n", card->alias, card->name, card->compute_major,
	        card->compute_minor, (double)card->total_bytes / (1024.0 * MIB),
	        (unsigned long long)(card->context_bytes / MIB), tn__certainty_text(row->certainty));
}

static void
write_table(FILE *out)
{
	fprintf(out, "%-12s %-49s %6s %11s %8s  %s\n", "alias", "name", "arch", "total", "context", "sure");
	for (int i = 0; i < tn__gpu_count(); i++)
		write_line(out, tn__gpu_row(i));
}

/* One figure of a card in its own unit, with how sure it is. */
static void
write_figure(FILE *out, const struct tn_gpu_row *row, enum tn_gpu_figure figure, const char *name, double value,
             const char *unit)
{
	char text[48] = "unknown";
	if (value > 0)
		snprintf(text, sizeof(text), "%.10g%s%s", value, unit[0] != '\0' ? " " : "", unit);
	fprintf(out, "  %-25s %-16s %-6s %s\n", name, text, tn__certainty_text(tn__gpu_figure_certainty(row, figure)),
	        tn__gpu_figure_source(row, figure));
}

static void
write_card(FILE *out, const struct tn_gpu_row *row)
{
	const struct tn_gpu_figures *card = &row->figures;
	fprintf(out, "%s\n", card->name);
	fprintf(out, "  %-25s ", "aliases");
	for (int i = 0; i < row->alias_count; i++)
		fprintf(out, "%s%s", i > 0 ? ", " : "", row->aliases[i]);
	fprintf(out, "\n  %-25s %d.%d\n", "compute capability", card->compute_major, card->compute_minor);
	write_figure(out, row, TN_GPU_FIGURE_TOTAL, "total", (double)card->total_bytes / MIB, "MiB");
	write_figure(out, row, TN_GPU_FIGURE_CONTEXT, "context", (double)card->context_bytes / MIB, "MiB");
	write_figure(out, row, TN_GPU_FIGURE_SM_COUNT, "multiprocessors", card->sm_count, "");
	write_figure(out, row, TN_GPU_FIGURE_L2, "L2 cache", (double)card->l2_bytes / 1024, "KiB");
	write_figure(out, row, TN_GPU_FIGURE_SHARED_OPTIN, "shared memory of a block",
	             card->shared_memory_optin_bytes / 1024.0, "KiB");
	write_figure(out, row, TN_GPU_FIGURE_MAX_THREADS, "threads of an SM", card->max_threads_per_sm, "");
	write_figure(out, row, TN_GPU_FIGURE_MAX_BLOCKS, "blocks of an SM", card->max_blocks_per_sm, "");
	write_figure(out, row, TN_GPU_FIGURE_SM_CLOCK, "SM clock", card->sm_clock_khz / 1000.0, "MHz");
	write_figure(out, row, TN_GPU_FIGURE_MEMORY_CLOCK, "memory clock", card->memory_clock_khz / 1000.0, "MHz");
	write_figure(out, row, TN_GPU_FIGURE_BANDWIDTH, "bandwidth", card->memory_gbps, "GB/s");
	write_figure(out, row, TN_GPU_FIGURE_BF16, "bf16 dense", card->bf16_tflops, "TFLOPS");
	write_figure(out, row, TN_GPU_FIGURE_TF32, "tf32 dense", card->tf32_tflops, "TFLOPS");
	write_figure(out, row, TN_GPU_FIGURE_FP32, "fp32", card->fp32_tflops, "TFLOPS");
	struct tn_printer printer = { out, { .columns = TN_COLUMNS } };
	tn__say(&printer, TN_TINT_NONE, 2, "evidence (row: %s): %s", tn__certainty_text(row->certainty), row->evidence);
}

/* ---- JSON ---- */

static void
set_figure(json_t *object, const struct tn_gpu_row *row, enum tn_gpu_figure figure, const char *name, json_t *value)
{
	json_object_set_new(object, name,
	                    json_pack("{s:o, s:s, s:s}", "value", value, "source", tn__gpu_figure_source(row, figure),
	                              "certainty", tn__certainty_text(tn__gpu_figure_certainty(row, figure))));
}

static json_t *
whole(uint64_t value)
{
	return value == 0 ? json_null() : json_integer((json_int_t)value);
}

static json_t *
fraction(double value)
{
	return value <= 0 ? json_null() : json_real(value);
}

static json_t *
card_object(const struct tn_gpu_row *row)
{
	const struct tn_gpu_figures *card = &row->figures;
	char capability[16];
	json_t *object = json_object(), *aliases = json_array();
	for (int i = 0; i < row->alias_count; i++)
		json_array_append_new(aliases, json_string(row->aliases[i]));
	json_object_set_new(object, "name", json_string(card->name));
	json_object_set_new(object, "aliases", aliases);
	snprintf(capability, sizeof(capability), "%d.%d", card->compute_major, card->compute_minor);
	set_figure(object, row, TN_GPU_FIGURE_COMPUTE_CAPABILITY, "compute_capability", json_string(capability));
	set_figure(object, row, TN_GPU_FIGURE_TOTAL, "total_bytes", whole(card->total_bytes));
	set_figure(object, row, TN_GPU_FIGURE_CONTEXT, "context_bytes", whole(card->context_bytes));
	set_figure(object, row, TN_GPU_FIGURE_SM_COUNT, "sm_count", whole((uint64_t)card->sm_count));
	set_figure(object, row, TN_GPU_FIGURE_L2, "l2_bytes", whole(card->l2_bytes));
	set_figure(object, row, TN_GPU_FIGURE_SHARED_OPTIN, "shared_memory_optin_bytes",
	           whole((uint64_t)card->shared_memory_optin_bytes));
	set_figure(object, row, TN_GPU_FIGURE_MAX_THREADS, "max_threads_per_sm", whole((uint64_t)card->max_threads_per_sm));
	set_figure(object, row, TN_GPU_FIGURE_MAX_BLOCKS, "max_blocks_per_sm", whole((uint64_t)card->max_blocks_per_sm));
	set_figure(object, row, TN_GPU_FIGURE_SM_CLOCK, "sm_clock_khz", whole((uint64_t)card->sm_clock_khz));
	set_figure(object, row, TN_GPU_FIGURE_MEMORY_CLOCK, "memory_clock_khz", whole((uint64_t)card->memory_clock_khz));
	set_figure(object, row, TN_GPU_FIGURE_BANDWIDTH, "memory_gbps", fraction(card->memory_gbps));
	set_figure(object, row, TN_GPU_FIGURE_BF16, "bf16_tflops", fraction(card->bf16_tflops));
	set_figure(object, row, TN_GPU_FIGURE_TF32, "tf32_tflops", fraction(card->tf32_tflops));
	set_figure(object, row, TN_GPU_FIGURE_FP32, "fp32_tflops", fraction(card->fp32_tflops));
	json_object_set_new(object, "evidence", json_string(row->evidence));
	json_object_set_new(object, "certainty", json_string(tn__certainty_text(row->certainty)));
	return object;
}

/* ---- both ---- */

tn_status
tn__cards_text(const struct tn_shown_cards *cards, struct tn_style style, FILE *out)
{
	(void)style; /* a table is as wide as its columns */
	if (cards->only != NULL)
		write_card(out, cards->only);
	else
		write_table(out);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "writing failed: %s", strerror(errno));
	return TN_OK;
}

tn_status
tn__cards_json(const struct tn_shown_cards *cards, FILE *out)
{
	json_t *gpus = json_array();
	for (int i = 0; i < tn__gpu_count(); i++)
		if (cards->only == NULL || tn__gpu_row(i) == cards->only)
			json_array_append_new(gpus, card_object(tn__gpu_row(i)));
	json_t *object = json_pack("{s:s, s:o}", "schema", "tonnage.gpus/1", "gpus", gpus);
	TN_RETURN_IF(object == NULL, TN_NO_MEMORY, "out of host memory while writing JSON");
	int failed = tn__json_write(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
	json_decref(object);
	TN_RETURN_IF(failed != 0 || fputc('\n', out) == EOF || fflush(out) != 0, TN_IO, "writing failed: %s",
	             strerror(errno));
	return TN_OK;
}

tn_status
tn__card_row(const struct tn_gpu_figures *card, const char *evidence, FILE *out)
{
	fprintf(out, "%s,%s,%d.%d,%d,%llu,%llu,%llu,%d,%d,%d,%d,%d,%.0f,", card->name,
	        card->alias[0] != '\0' ? card->alias : "thiscard", card->compute_major, card->compute_minor, card->sm_count,
	        (unsigned long long)(card->total_bytes / MIB), (unsigned long long)(card->context_bytes / MIB),
	        (unsigned long long)card->l2_bytes, card->shared_memory_optin_bytes, card->max_threads_per_sm,
	        card->max_blocks_per_sm, card->sm_clock_khz, card->memory_clock_khz, card->memory_gbps);
	if (card->bf16_tflops > 0)
		fprintf(out, "%.1f,%.1f,", card->bf16_tflops, card->tf32_tflops);
	else
		fputs(",,", out);
	fprintf(out, "%.1f,%s,exact,\n", card->fp32_tflops, evidence);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "writing failed: %s", strerror(errno));
	return TN_OK;
}
