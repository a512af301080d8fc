/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads gpus.csv and answers questions about it. The file has no quoting: no field holds a comma, lists use ';'.
 * It must not know who asks: no output, no shared ledger.
 */
#include "gpu/catalogue.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define MAX_ROWS 128
#define COLUMNS 19
#define SUGGESTED 4 /* cards that begin with a word, at most */
#define SUGGESTION (SUGGESTED * (sizeof(((struct tn_gpu_figures *)NULL)->alias) + sizeof(" or "))) /* their text */
#define MIB (UINT64_C(1) << 20)

extern const char tn__gpus_csv[];

enum { NAME, ALIASES, FIRST_FIGURE, EVIDENCE = FIRST_FIGURE + TN_GPU_FIGURE_COUNT, CERTAINTY, GUESSED };
_Static_assert(GUESSED + 1 == COLUMNS, "the columns of gpus.csv");

static const char *const figure_columns[TN_GPU_FIGURE_COUNT] = {
#define FIGURE_COLUMN(name, column) column,
	TN_GPU_FIGURES(FIGURE_COLUMN)
#undef FIGURE_COLUMN
};

static struct tn_gpu_row catalogue[MAX_ROWS];
static int catalogue_count;
static pthread_once_t catalogue_once = PTHREAD_ONCE_INIT;

/* ---- parsing ---- */

struct field {
	const char *at;
	size_t length;
};

static int
split(const char *at, size_t length, char separator, struct field *fields, int capacity)
{
	int count = 0;
	const char *end = at + length;
	while (count < capacity) {
		const char *stop = memchr(at, separator, (size_t)(end - at));
		fields[count++] = (struct field){ at, (size_t)((stop != NULL ? stop : end) - at) };
		if (stop == NULL)
			return count;
		at = stop + 1;
	}
	return capacity + 1;
}

static void
copy_text(char *to, size_t capacity, struct field from)
{
	size_t length = from.length < capacity ? from.length : capacity - 1;
	memcpy(to, from.at, length);
	to[length] = '\0';
}

/* A number without sign or exponent, so that no locale can change what the file says. Empty is 0: unknown. */
static bool
parse_number(struct field from, double *out)
{
	double value = 0, scale = 1;
	bool fraction = false;
	for (size_t i = 0; i < from.length; i++) {
		if (from.at[i] == '.' && !fraction) {
			fraction = true;
		} else if (isdigit((unsigned char)from.at[i])) {
			value = value * 10 + (from.at[i] - '0');
			scale *= fraction ? 10 : 1;
		} else {
			return false;
		}
	}
	*out = value / scale;
	return true;
}

static bool
parse_capability(struct field from, struct tn_gpu_figures *figures)
{
	struct field parts[2];
	double major, minor;
	if (split(from.at, from.length, '.', parts, 2) != 2 || !parse_number(parts[0], &major) ||
	    !parse_number(parts[1], &minor))
		return false;
	figures->compute_major = (int32_t)major;
	figures->compute_minor = (int32_t)minor;
	return true;
}

static bool
parse_figures(const struct field *fields, struct tn_gpu_figures *to)
{
	double number[TN_GPU_FIGURE_COUNT] = { 0 };
	for (int i = TN_GPU_FIGURE_SM_COUNT; i < TN_GPU_FIGURE_COUNT; i++)
		if (!parse_number(fields[FIRST_FIGURE + i], &number[i]))
			return false;
	to->sm_count = (int32_t)number[TN_GPU_FIGURE_SM_COUNT];
	to->total_bytes = (uint64_t)number[TN_GPU_FIGURE_TOTAL] * MIB;
	to->context_bytes = (uint64_t)number[TN_GPU_FIGURE_CONTEXT] * MIB;
	to->l2_bytes = (uint64_t)number[TN_GPU_FIGURE_L2];
	to->shared_memory_optin_bytes = (int32_t)number[TN_GPU_FIGURE_SHARED_OPTIN];
	to->max_threads_per_sm = (int32_t)number[TN_GPU_FIGURE_MAX_THREADS];
	to->max_blocks_per_sm = (int32_t)number[TN_GPU_FIGURE_MAX_BLOCKS];
	to->sm_clock_khz = (int32_t)number[TN_GPU_FIGURE_SM_CLOCK];
	to->memory_clock_khz = (int32_t)number[TN_GPU_FIGURE_MEMORY_CLOCK];
	to->memory_gbps = number[TN_GPU_FIGURE_BANDWIDTH];
	to->bf16_tflops = number[TN_GPU_FIGURE_BF16];
	to->tf32_tflops = number[TN_GPU_FIGURE_TF32];
	to->fp32_tflops = number[TN_GPU_FIGURE_FP32];
	return to->total_bytes > to->context_bytes && parse_capability(fields[FIRST_FIGURE], to);
}

static bool
parse_guessed(struct field from, uint32_t *out)
{
	struct field names[TN_GPU_FIGURE_COUNT];
	int count = split(from.at, from.length, ';', names, TN_GPU_FIGURE_COUNT);
	*out = 0;
	for (int i = 0; i < count && i < TN_GPU_FIGURE_COUNT && from.length > 0; i++) {
		int figure = 0;
		while (figure < TN_GPU_FIGURE_COUNT && (strlen(figure_columns[figure]) != names[i].length ||
		                                        memcmp(figure_columns[figure], names[i].at, names[i].length) != 0))
			figure++;
		if (figure == TN_GPU_FIGURE_COUNT)
			return false;
		*out |= UINT32_C(1) << figure;
	}
	return count <= TN_GPU_FIGURE_COUNT;
}

static bool
parse_certainty(struct field from, enum tn_certainty *out)
{
	for (int i = TN_CERTAINTY_EXACT; i <= TN_CERTAINTY_GUESS; i++) {
		const char *text = tn__certainty_text((enum tn_certainty)i);
		if (strlen(text) == from.length && memcmp(text, from.at, from.length) == 0) {
			*out = (enum tn_certainty)i;
			return true;
		}
	}
	return false;
}

static bool
parse_row(const char *line, size_t length, struct tn_gpu_row *row)
{
	struct field fields[COLUMNS], aliases[TN_GPU_ALIASES];
	memset(row, 0, sizeof(*row));
	if (split(line, length, ',', fields, COLUMNS) != COLUMNS || fields[NAME].length == 0 || fields[ALIASES].length == 0)
		return false;
	row->alias_count = split(fields[ALIASES].at, fields[ALIASES].length, ';', aliases, TN_GPU_ALIASES);
	if (row->alias_count > TN_GPU_ALIASES)
		return false;
	for (int i = 0; i < row->alias_count; i++)
		copy_text(row->aliases[i], sizeof(row->aliases[i]), aliases[i]);
	copy_text(row->figures.name, sizeof(row->figures.name), fields[NAME]);
	copy_text(row->figures.alias, sizeof(row->figures.alias), aliases[0]);
	copy_text(row->evidence, sizeof(row->evidence), fields[EVIDENCE]);
	return parse_figures(fields, &row->figures) && parse_certainty(fields[CERTAINTY], &row->certainty) &&
	       parse_guessed(fields[GUESSED], &row->guessed);
}

tn_status
tn__gpu_parse(const char *text, struct tn_gpu_row *rows, int capacity, int *count)
{
	int found = 0, line = 0;
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");
		line++;
		if (line > 1 && length > 0) {
			TN_RETURN_IF(found == capacity, TN_LIMIT, "the catalogue has more than %d cards", capacity);
			TN_RETURN_IF(!parse_row(text, length, &rows[found]), TN_FORMAT, "catalogue line %d is malformed", line);
			found++;
		}
		text += length + (text[length] == '\n');
	}
	*count = found;
	return TN_OK;
}

static void
load(void)
{
	(void)tn__gpu_parse(tn__gpus_csv, catalogue, MAX_ROWS, &catalogue_count);
}

/* ---- asking ---- */

int
tn__gpu_count(void)
{
	pthread_once(&catalogue_once, load);
	return catalogue_count;
}

const struct tn_gpu_row *
tn__gpu_row(int index)
{
	return index >= 0 && index < tn__gpu_count() ? &catalogue[index] : NULL;
}

/* The part of a name that tells cards apart: without maker, family, spaces, dashes and case. */
static void
plain_name(const char *name, char *out, size_t capacity)
{
	static const char *const noise[] = { "nvidia", "geforce", "tesla" };
	size_t length = 0;
	while (*name != '\0' && length + 1 < capacity) {
		size_t skipped = 0;
		for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]) && skipped == 0; i++)
			if (strncasecmp(name, noise[i], strlen(noise[i])) == 0)
				skipped = strlen(noise[i]);
		if (skipped == 0 && isalnum((unsigned char)*name))
			out[length++] = (char)tolower((unsigned char)*name);
		name += skipped > 0 ? skipped : 1;
	}
	out[length] = '\0';
}

const struct tn_gpu_row *
tn__gpu_find(const char *name)
{
	char wanted[128], known[128];
	plain_name(name, wanted, sizeof(wanted));
	if (wanted[0] == '\0')
		return NULL;
	for (int i = 0; i < tn__gpu_count(); i++) {
		plain_name(catalogue[i].figures.name, known, sizeof(known));
		if (strcmp(wanted, known) == 0)
			return &catalogue[i];
		for (int alias = 0; alias < catalogue[i].alias_count; alias++) {
			plain_name(catalogue[i].aliases[alias], known, sizeof(known));
			if (strcmp(wanted, known) == 0)
				return &catalogue[i];
		}
	}
	return NULL;
}

/* Levenshtein distance of two short texts, or 99 when one is longer than the table. */
static int
edit_distance(const char *a, const char *b)
{
	int row[64];
	size_t rows = strlen(a), columns = strlen(b);
	if (columns >= sizeof(row) / sizeof(row[0]) || rows >= 64)
		return 99;
	for (size_t j = 0; j <= columns; j++)
		row[j] = (int)j;
	for (size_t i = 1; i <= rows; i++) {
		int diagonal = row[0];
		row[0] = (int)i;
		for (size_t j = 1; j <= columns; j++) {
			int replace = diagonal + (a[i - 1] != b[j - 1]);
			int insert = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
			diagonal = row[j];
			row[j] = replace < insert ? replace : insert;
		}
	}
	return row[columns];
}

/* How far a plain name is from the nearest name of a card: 0 for the beginning of one. */
static int
distance_to(const struct tn_gpu_row *row, const char *wanted)
{
	char known[128];
	int best = 99;
	for (int alias = -1; alias < row->alias_count; alias++) {
		plain_name(alias < 0 ? row->figures.name : row->aliases[alias], known, sizeof(known));
		int distance = edit_distance(wanted, known);
		if (strlen(wanted) >= 3 && strncmp(known, wanted, strlen(wanted)) == 0)
			distance = 0;
		else if (strlen(wanted) >= 3 && strstr(known, wanted) != NULL && distance > 2)
			distance = 2;
		best = distance < best ? distance : best;
	}
	return best;
}

/* The aliases nearest to a name that was not found, "a100-40 or a100-80"; false when nothing is near. */
static bool
suggest(const char *name, char out[SUGGESTION])
{
	char wanted[128];
	const char *nearest[SUGGESTED];
	int best = 99, count = 0;
	plain_name(name, wanted, sizeof(wanted));
	for (int i = 0; i < tn__gpu_count(); i++) {
		int distance = distance_to(&catalogue[i], wanted);
		if (distance < best)
			count = 0;
		best = distance < best ? distance : best;
		if (distance == best && count < (best == 0 ? SUGGESTED : 1))
			nearest[count++] = catalogue[i].figures.alias;
	}
	if (best > 3 || best >= (int)strlen(wanted))
		return false;
	size_t used = 0;
	for (int i = 0; i < count; i++)
		used += (size_t)snprintf(out + used, SUGGESTION - used, "%s%s",
		                         i == 0          ? ""
		                         : i + 1 < count ? ", "
		                                         : " or ",
		                         nearest[i]);
	return true;
}

tn_status
tn__gpu_named(const char *name, const struct tn_gpu_row **out)
{
	char near[SUGGESTION];
	*out = tn__gpu_find(name);
	if (*out == NULL && suggest(name, near))
		return tn__fail(TN_NOT_FOUND, "unknown GPU \"%s\": did you mean %s? (tonnage gpus lists them)", name, near);
	TN_RETURN_IF(*out == NULL, TN_NOT_FOUND, "unknown GPU \"%s\": tonnage gpus lists the known ones", name);
	return TN_OK;
}

const struct tn_gpu_row *
tn__gpu_smallest(uint64_t device_peak, uint64_t context)
{
	const struct tn_gpu_row *best = NULL;
	uint64_t needed = device_peak > context ? device_peak - context : 0;
	for (int i = 0; i < tn__gpu_count(); i++) {
		const struct tn_gpu_figures *card = &catalogue[i].figures;
		if (card->total_bytes - card->context_bytes >= needed &&
		    (best == NULL || card->total_bytes < best->figures.total_bytes))
			best = &catalogue[i];
	}
	return best;
}

/* ---- how sure ---- */

/* Interpolated ones were up to 30 % off where they could be compared, single reports 15 %. */
double
tn__gpu_context_share(enum tn_certainty certainty)
{
	return certainty == TN_CERTAINTY_GUESS ? 0.30 : certainty == TN_CERTAINTY_NEAR ? 0.15 : 0;
}

const char *
tn__certainty_text(enum tn_certainty certainty)
{
	static const char *const texts[] = { "exact", "near", "guess" };
	return texts[certainty];
}

enum tn_certainty
tn__gpu_figure_certainty(const struct tn_gpu_row *row, enum tn_gpu_figure figure)
{
	if (row->guessed >> figure & 1)
		return TN_CERTAINTY_GUESS;
	switch (figure) {
	case TN_GPU_FIGURE_COMPUTE_CAPABILITY:
	case TN_GPU_FIGURE_SHARED_OPTIN:
	case TN_GPU_FIGURE_MAX_THREADS:
	case TN_GPU_FIGURE_MAX_BLOCKS:
		return TN_CERTAINTY_EXACT;
	case TN_GPU_FIGURE_CONTEXT:
	case TN_GPU_FIGURE_SM_CLOCK:
	case TN_GPU_FIGURE_MEMORY_CLOCK:
	case TN_GPU_FIGURE_BANDWIDTH:
	case TN_GPU_FIGURE_BF16:
	case TN_GPU_FIGURE_TF32:
	case TN_GPU_FIGURE_FP32:
		return row->certainty > TN_CERTAINTY_NEAR ? row->certainty : TN_CERTAINTY_NEAR;
	default:
		return row->certainty;
	}
}

const char *
tn__gpu_figure_source(const struct tn_gpu_row *row, enum tn_gpu_figure figure)
{
	bool guessed = row->guessed >> figure & 1;
	switch (figure) {
	case TN_GPU_FIGURE_COMPUTE_CAPABILITY:
		return "the maker's list of compute capabilities";
	case TN_GPU_FIGURE_SHARED_OPTIN:
	case TN_GPU_FIGURE_MAX_THREADS:
	case TN_GPU_FIGURE_MAX_BLOCKS:
		return "by compute capability: CUDA's occupancy header";
	case TN_GPU_FIGURE_CONTEXT:
		return guessed ? "interpolated by SM count, good to about 30 %" : "single public out-of-memory reports";
	case TN_GPU_FIGURE_BANDWIDTH:
		return "memory clock times bus width, or the maker's";
	case TN_GPU_FIGURE_BF16:
	case TN_GPU_FIGURE_TF32:
	case TN_GPU_FIGURE_FP32:
		return guessed ? "the maker's figure, from memory" : "the maker's dense peak, or SMs times clock";
	default:
		return guessed ? "a sister card's, or the maker's figure" : "printed by a device query (see evidence)";
	}
}
