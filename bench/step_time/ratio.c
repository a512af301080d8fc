/* SPDX-License-Identifier: Apache-2.0
 *
 * The ratio of two runs' step times on a card, as `tonnage fix` has it. Prints ratio, lowest and highest, and the seconds of the
 * last step of each.
 *
 *     ratio GPU UNCHANGED.tsv CHANGED.tsv
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/catalogue.h"
#include "trials/trial.h"

static struct tn_steps
read_steps(const char *path)
{
	static char text[4 << 20];
	struct tn_steps steps;
	FILE *file = fopen(path, "re");
	size_t size = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[size] = '\0';
	if (file != NULL)
		fclose(file);
	tn__steps_parse(text, &steps);
	return steps;
}

static double
seconds_of(const struct tn_steps *steps, const struct tn_gpu_figures *gpu)
{
	struct tn_assumptions middle = tn__assumptions(TN_BOUND_MIDDLE);
	return steps->count > 0 ? tn__step_seconds(&steps->items[steps->count - 1], gpu, &middle).total : 0;
}

int
main(int count, char **words)
{
	const struct tn_gpu_row *card = count == 4 ? tn__gpu_find(words[1]) : NULL;
	if (card == NULL) {
		fprintf(stderr, "usage: ratio GPU UNCHANGED.tsv CHANGED.tsv\n");
		return 2;
	}
	struct tn_steps unchanged = read_steps(words[2]), changed = read_steps(words[3]);
	struct tn_time_ratio time = tn__time_ratio(&unchanged, &changed, 1, &card->figures);
	printf("%.3f,%.3f,%.3f,%.4f,%.4f\n", time.ratio, time.low, time.high, seconds_of(&unchanged, &card->figures),
	       seconds_of(&changed, &card->figures));
	tn__steps_free(&unchanged);
	tn__steps_free(&changed);
	return time.known ? 0 : 1;
}
