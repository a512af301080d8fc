/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function is linear in its line, times the names looked for.
 */
#include "message/seen.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "message/internal_message.h"
#include "message/words_of_line.h"

#define NONE TN_MESSAGE_NONE
#define MIB 1048576u

static const char *const setting_names[] = {
#define SETTING(what, names) [TN_SETTING_##what] = names,
#include "message/settings.def"
#undef SETTING
};

/* In the order of what they tell: a model that is named, then one that is only a path. */
static const char *const model_names[] = { "model_name_or_path",
	                                       "pretrained_model_name_or_path",
	                                       "base_model",
	                                       "model_path",
	                                       "model-path",
	                                       "model_id",
	                                       "--model",
	                                       "model",
	                                       NULL };

void
tn__seen_start(struct tn_seen *seen)
{
	memset(seen, 0, sizeof(*seen));
	memset(seen->settings, 0xff, sizeof(seen->settings));
	memset(seen->name_of, 0xff, sizeof(seen->name_of));
	memset(seen->summary, 0xff, sizeof(seen->summary));
	memset(seen->summary_peak, 0xff, sizeof(seen->summary_peak));
	seen->parameters = seen->trainable = NONE;
	seen->line_card = seen->summary_device = -1;
}

/* The value behind a name at `found`, or NULL when the name goes on or no value follows. */
static const char *
value_behind(const char *line, const char *found, size_t size)
{
	const char *at = found + size;
	bool option = found > line && found[-1] == '-';
	if (found > line && (tn__name_char(found[-1]) || found[-1] == '.'))
		return NULL;
	at += strspn(at, "\"'\\");
	bool sign = *at == '=' || *at == ':' || (*at == ' ' && (strchr("=:", at[strspn(at, " ")]) != NULL || option));
	if (!sign || *at == '\0')
		return NULL;
	at += strspn(at, " =:\"'\\");
	return *at != '\0' ? at : NULL;
}

/* The value of a name, of the first place in the line where it has one; NULL if nowhere. */
static const char *
value_of(const char *line, size_t length, const char *name)
{
	size_t size = strlen(name);
	const char *end = line + length;
	for (const char *at = line; (at = tn__find(at, (size_t)(end - at), name)) != NULL; at += size) {
		const char *value = value_behind(line, at, size);
		if (value != NULL)
			return value;
	}
	return NULL;
}

/* A count of at most nine digits, which nothing but a separator follows. */
static bool
read_count(const char *text, uint64_t *out)
{
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || digits > 9 || tn__name_char(text[digits]) ||
	    (text[digits] == '.' && isdigit((unsigned char)text[digits + 1])))
		return false;
	*out = strtoull(text, NULL, 10);
	return true;
}

static void
read_setting(struct tn_seen *seen, enum tn_seen_setting setting, const char *line, size_t length)
{
	uint8_t rank = 0;
	for (const char *name = setting_names[setting]; rank < seen->name_of[setting]; rank++) {
		size_t size = strcspn(name, "|");
		char word[64];
		memcpy(word, name, size);
		word[size] = '\0';
		const char *value = value_of(line, length, word);
		uint64_t count;
		if (value != NULL && read_count(value, &count) && count > 0) {
			seen->settings[setting] = count;
			seen->name_of[setting] = rank;
			return;
		}
		if (name[size] == '\0')
			return;
		name += size + 1;
	}
}

/* "meta-llama/Llama-2-7b-hf", "/models/llama.gguf": a name with a letter, and with a '/', '.', '-' or '_' in it. */
static void
read_model(struct tn_seen *seen, const char *line, size_t length)
{
	for (size_t i = 0; seen->model[0] == '\0' && model_names[i] != NULL; i++) {
		const char *value = value_of(line, length, model_names[i]);
		size_t end = value != NULL ? strcspn(value, " \"'`,;()[]{}<>|\\=$&*") : 0;
		if (end < 4 || end >= TN_SEEN_MODEL || value[end] == '(' || strcspn(value, "/-") >= end ||
		    strncmp(value, "--", 2) == 0 || strncmp(value, "http", 4) == 0)
			continue;
		memcpy(seen->model, value, end);
		seen->model[end] = '\0';
	}
}

/* "6,742,609,920" or "124.4 M", NONE for anything else. */
static uint64_t
read_parameters(const char *text)
{
	char plain[32];
	size_t used = 0, i = strspn(text, " =:");
	for (; used < sizeof(plain) - 1 && (isdigit((unsigned char)text[i]) || text[i] == ',' || text[i] == '.'); i++)
		if (text[i] != ',')
			plain[used++] = text[i];
	plain[used] = '\0';
	if (used == 0)
		return NONE;
	double value = strtod(plain, NULL);
	i += text[i] == ' ';
	value *= text[i] == 'B' ? 1e9 : text[i] == 'M' ? 1e6 : text[i] == 'K' ? 1e3 : 1;
	return value > 0 && value < 1e15 ? (uint64_t)(value + 0.5) : NONE;
}

/* peft: "trainable params: 4,194,304 || all params: 6,742,609,920"; transformers: "Number of trainable parameters =
 * 124,439,808";
 * Lightning: "124 M     Trainable params", "124 M     Total params". */
static void
read_model_size(struct tn_seen *seen, const char *line, size_t length)
{
	const char *found = strstr(line, "trainable params:");
	if (found != NULL) {
		seen->trainable = read_parameters(found + 17);
		const char *all = strstr(found, "all params:");
		if (all != NULL)
			seen->parameters = read_parameters(all + 11);
	} else if ((found = strstr(line, "trainable parameters = ")) != NULL) {
		seen->trainable = read_parameters(found + 23);
	} else if (length > 16 && isdigit((unsigned char)line[0])) {
		if (strcmp(line + length - 16, "Trainable params") == 0 && strncmp(line + length - 20, "Non-", 4) != 0)
			seen->trainable = read_parameters(line);
		else if (strcmp(line + length - 12, "Total params") == 0)
			seen->parameters = read_parameters(line);
	}
}

/* ---- nvidia-smi ---- */

/* "51MiB / 12282MiB |" */
static void
read_card(struct tn_seen *seen, const char *line)
{
	const char *at = strstr(line, "MiB / ");
	if (at == NULL || at == line || !isdigit((unsigned char)at[-1]))
		return;
	const char *total = at + 6;
	total += strspn(total, " ");
	size_t digits = strspn(total, "0123456789");
	if (digits == 0 || digits > 9 || strncmp(total + digits, "MiB", 3) != 0)
		return;
	while (at > line && isdigit((unsigned char)at[-1]))
		at--;
	if (seen->card_count < TN_SEEN_CARDS)
		seen->cards[seen->card_count++] = (struct tn_seen_card){ seen->line_card, strtoull(at, NULL, 10) * MIB,
			                                                     strtoull(total, NULL, 10) * MIB };
	seen->line_card = -1;
}

/* "|    0   N/A  N/A      1234      C   python     10240MiB |", and without the instances in older ones. */
static void
read_listed(struct tn_seen *seen, const char *line, size_t length)
{
	size_t i = strspn(line, "| ");
	size_t digits = strspn(line + i, "0123456789");
	if (digits == 0 || digits > 2 || line[i + digits] != ' ')
		return;
	int64_t card = strtoll(line + i, NULL, 10);
	i += digits;
	i += strspn(line + i, " N/A");
	digits = strspn(line + i, "0123456789");
	if (digits == 0 || digits > 9) { /* no process: the card's first line, whose figures follow */
		seen->line_card = isalpha((unsigned char)line[i]) && strstr(line, "MiB") == NULL ? card : -1;
		return;
	}
	uint64_t pid = strtoull(line + i, NULL, 10);
	i += digits + strspn(line + i + digits, " ");
	if ((line[i] != 'C' && line[i] != 'G') || seen->process_count == TN_SEEN_PROCESSES)
		return;
	size_t end = length;
	while (end > i && (line[end - 1] == ' ' || line[end - 1] == '|'))
		end--;
	if (end < i + 4 || strncmp(line + end - 3, "MiB", 3) != 0)
		return;
	size_t first = end - 3;
	while (first > i && isdigit((unsigned char)line[first - 1]))
		first--;
	if (first < end - 3)
		seen->processes[seen->process_count++] = (struct tn_seen_process){ card, pid,
			                                                               strtoull(line + first, NULL, 10) * MIB };
}

static void
read_nvidia_smi(struct tn_seen *seen, const char *line, size_t length)
{
	if (strstr(line, "NVIDIA-SMI ") != NULL) { /* a newer table */
		seen->card_count = seen->process_count = 0;
		seen->line_card = -1;
	}
	read_card(seen, line);
	read_listed(seen, line, length);
}

/* ---- memory_summary() ---- */

/* "14396 MiB", "14.06 GB": torch prints units of 1024. Returns what is behind it, NULL for anything else. */
static const char *
read_cell(const char *text, uint64_t *bytes)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = { { "KiB", 1024.0 }, { "MiB", 1048576.0 }, { "GiB", 1073741824.0 },
		          { "KB", 1024.0 },  { "MB", 1048576.0 },  { "GB", 1073741824.0 },
		          { "B", 1 } };
	char *end;
	text += strspn(text, " |");
	if (!isdigit((unsigned char)*text))
		return NULL;
	double value = strtod(text, &end);
	end += strspn(end, " ");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t size = strlen(units[i].name);
		if (strncmp(end, units[i].name, size) == 0 && value * units[i].factor < 1e18) {
			*bytes = (uint64_t)(value * units[i].factor + 0.5);
			return end + size;
		}
	}
	return NULL;
}

static void
read_summary(struct tn_seen *seen, const char *line)
{
	static const char *const rows[] = {
#define ROW_WORDS(name, text, words) words,
		TN_SUMMARY_LIST(ROW_WORDS)
#undef ROW_WORDS
	};
	const char *head = strstr(line, "PyTorch CUDA memory summary, device ID ");
	if (head != NULL) {
		seen->in_summary = true;
		seen->summary_device = strtoll(head + 39, NULL, 10);
		return;
	}
	if (!seen->in_summary)
		return;
	const char *row = line + strspn(line, "| ");
	for (size_t i = 0; i < TN_SUMMARY_COUNT; i++) {
		size_t size = strlen(rows[i]);
		uint64_t now, peak;
		if (strncmp(row, rows[i], size) != 0 || row[size] != ' ')
			continue;
		const char *rest = read_cell(row + size, &now);
		if (rest == NULL)
			continue;
		seen->summary[i] = now;
		if (read_cell(rest, &peak) != NULL)
			seen->summary_peak[i] = peak;
	}
	if (strncmp(row, "Oversize GPU segments", 21) == 0)
		seen->in_summary = false;
}

/* ---- all ---- */

void
tn__seen_read(struct tn_seen *seen, const char *line, size_t length)
{
	if (length == 0)
		return;
	if (memchr(line, '=', length) != NULL || memchr(line, ':', length) != NULL || strstr(line, "--") != NULL) {
		for (enum tn_seen_setting i = 0; i < TN_SETTING_COUNT; i++)
			read_setting(seen, i, line, length);
		read_model(seen, line, length);
	}
	if (strstr(line, "rainable par") != NULL || (length > 12 && strcmp(line + length - 12, "Total params") == 0))
		read_model_size(seen, line, length);
	if (line[0] == '|' || strstr(line, "MiB") != NULL || strstr(line, "NVIDIA-SMI") != NULL)
		read_nvidia_smi(seen, line, length);
	if (seen->in_summary || strstr(line, "memory summary, device") != NULL)
		read_summary(seen, line);
}

bool
tn__seen_any(const struct tn_seen *seen)
{
	for (size_t i = 0; i < TN_SETTING_COUNT; i++)
		if (seen->settings[i] != NONE)
			return true;
	return seen->model[0] != '\0' || seen->parameters != NONE || seen->trainable != NONE || seen->card_count > 0 ||
	       seen->summary_device >= 0;
}

const char *
tn__setting_text(enum tn_seen_setting setting)
{
#define SETTING_NAME(name, text) text,
	static const char *const texts[] = { TN_SETTING_LIST(SETTING_NAME) };
#undef SETTING_NAME
	return texts[setting];
}

const char *
tn__summary_text(enum tn_seen_summary figure)
{
#define SUMMARY_NAME(name, text, words) text,
	static const char *const texts[] = { TN_SUMMARY_LIST(SUMMARY_NAME) };
#undef SUMMARY_NAME
	return texts[figure];
}
