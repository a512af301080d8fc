/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch, model and pasted tables of a text, for a person and as JSON.
 */
#include "report/explain_seen.h"

#include <inttypes.h>
#include <stdarg.h>

#include "report/explain_snapshot.h" /* tn__write_json_string */

#define SHOWN_ROWS 4 /* cards and processes, for a person */

/* ---- JSON ---- */

static void
write_count(FILE *out, uint64_t value)
{
	if (value == TN_MESSAGE_NONE)
		fputs("null", out);
	else
		fprintf(out, "%" PRIu64, value);
}

static void
write_cards(const struct tn_seen *seen, FILE *out)
{
	fputs(",\n    \"nvidia_smi\": [", out);
	for (size_t i = 0; i < seen->card_count; i++) {
		const struct tn_seen_card *card = &seen->cards[i];
		bool any = false;
		fprintf(out, "%s\n      { \"index\": ", i > 0 ? "," : "");
		if (card->index < 0)
			fputs("null", out);
		else
			fprintf(out, "%" PRId64, card->index);
		fprintf(out, ", \"used_bytes\": %" PRIu64 ", \"total_bytes\": %" PRIu64 ", \"processes\": [", card->used,
		        card->total);
		for (size_t k = 0; k < seen->process_count; k++)
			if (seen->processes[k].card == card->index) {
				fprintf(out, "%s[%" PRIu64 ", %" PRIu64 "]", any ? ", " : "", seen->processes[k].pid,
				        seen->processes[k].bytes);
				any = true;
			}
		fputs("] }", out);
	}
	fputs(seen->card_count > 0 ? "\n    ]" : "]", out);
}

static void
write_summary(const struct tn_seen *seen, FILE *out)
{
	fputs(",\n    \"memory_summary\": ", out);
	if (seen->summary_device < 0) {
		fputs("null", out);
		return;
	}
	fprintf(out, "{\n      \"device_index\": %" PRId64, seen->summary_device);
	for (enum tn_seen_summary i = 0; i < TN_SUMMARY_COUNT; i++) {
		fprintf(out, ",\n      \"%s\": ", tn__summary_text(i));
		write_count(out, seen->summary[i]);
		fprintf(out, ",\n      \"peak_%s\": ", tn__summary_text(i));
		write_count(out, seen->summary_peak[i]);
	}
	fputs("\n    }", out);
}

void
tn__seen_json(const struct tn_seen *seen, FILE *out)
{
	if (!tn__seen_any(seen))
		return;
	fputs(",\n  \"seen\": {\n    \"model\": ", out);
	if (seen->model[0] != '\0')
		tn__write_json_string(out, seen->model);
	else
		fputs("null", out);
	fputs(",\n    \"parameters\": ", out);
	write_count(out, seen->parameters);
	fputs(",\n    \"trained_parameters\": ", out);
	write_count(out, seen->trainable);
	for (enum tn_seen_setting i = 0; i < TN_SETTING_COUNT; i++) {
		fprintf(out, ",\n    \"%s\": ", tn__setting_text(i));
		write_count(out, seen->settings[i]);
	}
	write_cards(seen, out);
	write_summary(seen, out);
	fputs("\n  }", out);
}

/* ---- for a person ---- */

/* A sentence's parts, separated by commas. */
struct parts {
	char text[512];
	size_t used;
};

static void __attribute__((format(printf, 2, 3)))
part(struct parts *parts, const char *format, ...)
{
	size_t room = sizeof(parts->text) - parts->used;
	int size = snprintf(parts->text + parts->used, room, "%s", parts->used > 0 ? ", " : "");
	va_list arguments;
	va_start(arguments, format);
	int more = vsnprintf(parts->text + parts->used + size, room - (size_t)size, format, arguments);
	va_end(arguments);
	if (size + more < (int)room)
		parts->used += (size_t)(size + more);
	else
		parts->text[parts->used] = '\0';
}

static void
part_parameters(struct parts *parts, uint64_t count, const char *words)
{
	double value = (double)count;
	if (count == TN_MESSAGE_NONE)
		return;
	part(parts, "%.4g%s %s",
	     value >= 1e9   ? value / 1e9
	     : value >= 1e6 ? value / 1e6
	                    : value,
	     value >= 1e9   ? " billion"
	     : value >= 1e6 ? " million"
	                    : "",
	     words);
}

static void
say_settings(const struct tn_seen *seen, const struct tn_printer *printer)
{
	static const char *const words[] = { "batch", "accumulation over steps:", "length", "picture size" };
	struct parts parts = { .used = 0 };
	if (seen->model[0] != '\0')
		part(&parts, "model %s", seen->model);
	part_parameters(&parts, seen->parameters, "parameters");
	part_parameters(&parts, seen->trainable, "trained parameters");
	for (enum tn_seen_setting i = 0; i < TN_SETTING_COUNT; i++)
		if (seen->settings[i] != TN_MESSAGE_NONE)
			part(&parts, "%s %" PRIu64, words[i], seen->settings[i]);
	if (parts.used > 0)
		tn__say(printer, TN_TINT_NONE, 2, "%s", parts.text);
}

static void
say_cards(const struct tn_seen *seen, const struct tn_printer *printer)
{
	char a[40], b[40], name[24];
	for (size_t i = 0; i < seen->card_count && i < SHOWN_ROWS; i++) {
		struct parts parts = { .used = 0 };
		snprintf(name, sizeof(name), seen->cards[i].index >= 0 ? "card %d" : "a card", (int)seen->cards[i].index);
		part(&parts, "nvidia-smi: %s holds %s of %s", name, tn__message_size(seen->cards[i].used, a),
		     tn__message_size(seen->cards[i].total, b));
		for (size_t k = 0, listed = 0; k < seen->process_count; k++)
			if (seen->processes[k].card == seen->cards[i].index && seen->cards[i].index >= 0 && listed++ < SHOWN_ROWS)
				part(&parts, "process %" PRIu64 " %s", seen->processes[k].pid,
				     tn__message_size(seen->processes[k].bytes, a));
		tn__say(printer, TN_TINT_NONE, 2, "%s", parts.text);
	}
}

static void
say_summary(const struct tn_seen *seen, const struct tn_printer *printer)
{
	static const struct {
		enum tn_seen_summary figure;
		const char *words;
	} rows[] = { { TN_SUMMARY_ALLOCATED, "allocated" }, { TN_SUMMARY_RESERVED, "reserved" } };
	char a[40], b[40];
	struct parts parts = { .used = 0 };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t now = seen->summary[rows[i].figure], peak = seen->summary_peak[rows[i].figure];
		if (now != TN_MESSAGE_NONE && peak != TN_MESSAGE_NONE)
			part(&parts, "%s %s (peak %s)", tn__message_size(now, a), rows[i].words, tn__message_size(peak, b));
	}
	if (parts.used > 0)
		tn__say(printer, TN_TINT_NONE, 2, "memory_summary of device %" PRId64 ": %s", seen->summary_device, parts.text);
}

void
tn__seen_text(const struct tn_seen *seen, const struct tn_printer *printer)
{
	if (!tn__seen_any(seen))
		return;
	fputc('\n', printer->out);
	tn__say(printer, TN_TINT_NONE, 0, "The text also says");
	say_settings(seen, printer);
	say_cards(seen, printer);
	say_summary(seen, printer);
}
