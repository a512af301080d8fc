/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages that teach about errors, told by their titles, chapters and headings. Linear in the line.
 */
#include "message/internal_message.h"
#include "message/words_of_line.h"

/* Where the words of a heading start: behind "##", "**", "1.", "-". */
static size_t
heading_words(const char *line, size_t length)
{
	size_t i = 0;
	while (i < length && (strchr(" #*>-_.)", line[i]) != NULL || isdigit((unsigned char)line[i]) ||
	                      (unsigned char)line[i] >= 0xf0 || ((unsigned char)line[i] & 0xc0) == 0x80))
		i++;
	return i;
}

bool
tn__line_opens_chapter(const char *line, size_t length)
{
	size_t first = heading_words(line, length);
	while (length > first && strchr(" *:#", line[length - 1]) != NULL)
		length--;
	const char *text = line + first;
	size_t size = length - first;
	static const char *const names[] = { "frequently asked questions",
		                                 "faq",
		                                 "faqs",
		                                 "troubleshooting",
		                                 "troubleshooting guide",
		                                 "common issues",
		                                 "common errors",
		                                 "common problems",
		                                 "known issues",
		                                 "known limitations",
		                                 "common issues and solutions",
		                                 "error handling",
		                                 "error messages",
		                                 "example errors",
		                                 "symptoms",
		                                 "symptom",
		                                 "possible causes",
		                                 "what's new",
		                                 "what's fixed",
		                                 "what's changed",
		                                 "changelog",
		                                 "release notes",
		                                 "bug fixes",
		                                 "new features",
		                                 "example error",
		                                 "what the error looks like",
		                                 "what it looks like",
		                                 "what this error means" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (size == strlen(names[i]) && strncasecmp(text, names[i], size) == 0)
			return true;
	return false;
}

bool
tn__line_heads_remedy(const char *line, size_t length)
{
	size_t first = heading_words(line, length);
	const char *text = line + first;
	size_t size = length - first;
	bool marked = first > 0 || (size > 0 && text[size - 1] == ':');
	static const char *const others[] = { "\xe8\xa7\xa3\xe5\x86\xb3", "\xe8\xa7\xa3\xe6\xb1\xba",
		                                  "\xe5\xaf\xbe\xe5\x87\xa6" };
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strncmp(line, others[i], 6) == 0 ||
		    (marked && tn__find(line, length < 12 ? length : 12, others[i]) != NULL))
			return true;
	static const char *const headings[] = { "what this means", "why it happens",   "why this happens",
		                                    "how to fix",      "how to fix it",    "how to reproduce",
		                                    "what causes it",  "step-by-step fix", "common causes" };
	for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++)
		if (size == strlen(headings[i]) && strncasecmp(text, headings[i], size) == 0)
			return true;
	return (marked && tn__begins_with(
						  text, size,
						  "solution|solutions|fix|fixes|how to fix|cause|causes|resolution|workaround|"
						  "why it happens|what to do|answer|a|possible solutions|quick fix|mitigation|remedy|recovery",
						  true)) ||
	       tn__begins_with(
			   text, size,
			   "try the following|to prevent this|to avoid this|if you encounter|this error occurs|this error means|"
			   "this happens when|this indicates|indicates that|means that|usually a|usually the|to fix this|to resolve this|to solve this|try these|solution:|fix:|solutions:",
			   true);
}

bool
tn__line_titles_page(const char *line, size_t length)
{
	return (length < 160 &&
	        tn__begins_with(line, length,
	                        "Understanding|Troubleshooting|Fixing|Solving|Resolving|Demystifying|Deciphering|"
	                        "How to fix|How to solve|How to avoid",
	                        false)) ||
	       (length < 160 && tn__has_any(line, length,
	                                    "what it means|how to fix it|and how to fix|causes and fixes|complete guide|"
	                                    "troubleshooting guide|actually means|common causes|a deep dive|explained:|"
	                                    "guide to fixing|guide to solving"));
}
