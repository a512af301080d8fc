/* SPDX-License-Identifier: Apache-2.0
 *
 * Places in the program as a person reads them: short where they can be, whole where they must be found.
 */
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "verdict/paths.h"

#define CHAIN_FRAMES 3
#define DEEP_COLUMNS 44 /* paths below this width keep all their folders */

const char *
tn__shown_path(const struct tn_report *report, struct tn_style style, const char *file, char buffer[TN_PLACE_TEXT])
{
	const char *package = tn__path_in_package(file), *path = tn__portable_path(report, file);
	const char *dots = style.utf8 ? "\u2026" : "...", *name = tn__file_name(path);
	int first = (int)strcspn(path, "/");
	if (package != NULL && path + first + 1 < name && strchr(path + first + 1, '/') < name - 1)
		snprintf(buffer, TN_PLACE_TEXT, "%.*s/%s/%s", first, path, dots, name);
	else if (path[0] == '/' && tn__columns_of(path) > DEEP_COLUMNS) {
		const char *folder = name - 1;
		while (folder > path && folder[-1] != '/')
			folder--;
		snprintf(buffer, TN_PLACE_TEXT, "%s/%s", dots, folder);
	} else
		snprintf(buffer, TN_PLACE_TEXT, "%s", path);
	tn__make_plain(buffer, '?');
	return buffer;
}

const char *
tn__place_words(const struct tn_report *report, struct tn_style style, const struct tn_place *place,
                char buffer[TN_PLACE_TEXT])
{
	char path[TN_PLACE_TEXT];
	buffer[0] = '\0';
	if (place == NULL || place->file == NULL)
		return buffer;
	bool named = place->function != NULL && place->function[0] != '<';
	snprintf(buffer, TN_PLACE_TEXT, "%s%.300s%s%lld%s%.100s", place->backward ? "backward of " : "",
	         tn__shown_path(report, style, place->file, path), tn__before_line(place->file), (long long)place->line,
	         named ? " " : "", named ? place->function : "");
	tn__make_plain(buffer, '?');
	return buffer;
}

/* ---- the way to an out-of-memory ---- */

/* The innermost frame of a package other than PyTorch, where it is deeper than the user's own. */
static const struct tn_place *
package_frame(const struct tn_place_list *stack)
{
	for (size_t i = 0; i < stack->count && !tn__is_users_own(stack->items[i].file); i++) {
		const char *package = tn__path_in_package(stack->items[i].file);
		if (package != NULL && strncmp(package, "torch/", 6) != 0)
			return &stack->items[i];
	}
	return NULL;
}

static bool
same_line(const struct tn_place *a, const struct tn_place *b)
{
	return a->line == b->line && strcmp(a->file, b->file) == 0;
}

/* The frames to show, innermost first: where a package asked, then the last of the user's own. */
static size_t
choose_frames(const struct tn_report_oom *oom, const struct tn_place *shown[CHAIN_FRAMES + 1])
{
	const struct tn_place *package = package_frame(&oom->stack);
	size_t count = 0;
	if (package != NULL)
		shown[count++] = package;
	for (size_t i = 0, own = 0; i < oom->stack.count && own < CHAIN_FRAMES; i++) {
		bool again = count > 0 && same_line(shown[count - 1], &oom->stack.items[i]); /* a comprehension */
		if (tn__is_users_own(oom->stack.items[i].file) && !again) {
			shown[count++] = &oom->stack.items[i];
			own++;
		}
	}
	if (count == 0 && oom->at != NULL)
		shown[count++] = oom->at;
	return count;
}

char *
tn__place_chain(const struct tn_report *report, struct tn_style style)
{
	const struct tn_place *shown[CHAIN_FRAMES + 1];
	size_t count = choose_frames(&report->oom, shown);
	char *text = NULL, path[TN_PLACE_TEXT];
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	for (size_t i = count; i-- > 0;)
		fprintf(out, "%s%s%lld%s", tn__shown_path(report, style, shown[i]->file, path), tn__before_line(shown[i]->file),
		        (long long)shown[i]->line,
		        i == 0       ? ""
		        : style.utf8 ? " \u2192 "
		                     : " -> ");
	const struct tn_place *at = report->oom.at;
	bool further = count > 0 && at != NULL && at->backward && !same_line(at, shown[0]);
	if (further)
		fprintf(out, "%s%s", style.utf8 ? " \u2192 " : " -> ", tn__place_words(report, style, at, path));
	else if (count > 0 && shown[0]->function != NULL && shown[0]->function[0] != '<')
		fprintf(out, " %s", shown[0]->function);
	fclose(out);
	return text;
}
