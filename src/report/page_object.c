/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page_object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secrets.h"
#include "report/json_parts.h"
#include "report/page_template.h"

static json_t *
categories(void)
{
	json_t *array = json_array();
	for (int i = 0; i < TN_CATEGORIES; i++)
		json_array_append_new(array, json_pack("{s:s, s:s}", "name", tn__category_name((enum tn_category)i), "words",
		                                       tn__category_words((enum tn_category)i)));
	return array;
}

/* The tables of what was alive, of which there is nothing. */
static json_t *
empty_tables(void)
{
	return json_pack("{s:[s], s:{s:[], s:[], s:[], s:[]}, s:{s:[i], s:[i]}, s:{s:[], s:[], s:[], s:[]},"
	                 " s:{s:i, s:[], s:[], s:[], s:[], s:[], s:[]}, s:{s:[], s:[], s:[], s:[], s:[], s:[], s:[]}}",
	                 "strings", "", "frames", "function", "file", "line", "kind", "stacks", "parent", 0, "frame", -1,
	                 "sites", "at", "user", "backward", "stack", "intervals", "smallest_bytes", 0, "from", "life",
	                 "bytes", "category", "site", "label", "small", "category", "site", "label", "changes", "column",
	                 "bytes", "blocks");
}

json_t *
tn__page_new(const char *title)
{
	json_t *tables = empty_tables();
	json_t *page = json_pack(
		"{s:s, s:s, s:o, s:[], s:b, s:i, s:[i], s:n, s:[], s:[], s:[], s:n, s:o, s:n, s:[], s:[], s:n,"
		" s:n, s:n, s:n}",
		"schema", "tonnage.page/1", "tool", TONNAGE_VERSION, "title", tn__json_text(title), "notes", "inferred", 0,
		"device", 0, "devices", 0, "card", "findings", "regions", "assumptions", "network", "categories", categories(),
		"timeline", "moments", "segments", "comparison", "fix", "fit", "frontier");
	bool good = tables != NULL && page != NULL && json_object_update(page, tables) == 0;
	json_decref(tables);
	if (good)
		return page;
	json_decref(page);
	return NULL;
}

void
tn__page_add_line(json_t *lines, const char *text)
{
	if (text != NULL)
		json_array_append_new(lines, tn__json_text(text));
}

void
tn__page_add_fact(json_t *about, const char *name, const char *text)
{
	if (text != NULL)
		json_array_append_new(about, json_pack("[s, o]", name, tn__json_text(text)));
}

tn_status
tn__page_put(const json_t *page, FILE *out)
{
	char *dumped = json_dumps(page, JSON_COMPACT);
	char *text = dumped != NULL ? tn__mask_known(NULL, dumped) : NULL;
	free(dumped);
	TN_RETURN_IF(text == NULL, TN_NO_MEMORY, "out of host memory for the page");
	bool written = tn__page_write(out, text, strlen(text)) == TN_OK && fflush(out) == 0;
	free(text);
	TN_RETURN_IF(!written, TN_STATE, "the page could not be written: %s", strerror(errno));
	return TN_OK;
}
