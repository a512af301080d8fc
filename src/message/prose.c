/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a sentence teaches: it says in general what such errors are, when they come, what to do.
 *
 * A person who has the error says "I" and "my", and prints numbers; who teaches says "you", "often", "means". Linear in
 * the line.
 */
#include <ctype.h>
#include <string.h>

#include "message/internal_message.h"

/* Words that each sentence has. */
static const char plain_words[] =
	" the a an is are was be of in to for with and or as when it this that these on at by "
	"their its has have not but from which who how then ";

/* Words of sentences that hold in general. */
static const char general_words[] =
	" your you users developers often typically usually common commonly most may might will would should can could must "
	"whenever means indicates indicating signifies critical occurs happens dreaded frustrating because why how ";

/* Words of one who has it. */
static const char own_words[] = " i my me mine im ive myself we our us ";

struct sentence {
	size_t first, last;
};

static struct sentence
around(const char *line, size_t length, size_t start, size_t end)
{
	struct sentence found = { start, end };
	while (found.first > 1 && !(line[found.first - 1] == ' ' && strchr(".?!", line[found.first - 2]) != NULL))
		found.first--;
	if (found.first == 1)
		found.first = 0;
	while (found.last < length &&
	       !(strchr(".?!", line[found.last]) != NULL && (found.last + 1 == length || line[found.last + 1] == ' ')))
		found.last++;
	return found;
}

struct words {
	size_t all, plain, general, own;
};

static void
count_word(const char *word, size_t size, struct words *words)
{
	char padded[24] = " ";
	if (size == 0 || size > 20)
		return;
	for (size_t i = 0; i < size; i++)
		padded[1 + i] = (char)tolower((unsigned char)word[i]);
	padded[size + 1] = ' ';
	words->all++;
	words->plain += strstr(plain_words, padded) != NULL;
	words->general += strstr(general_words, padded) != NULL;
	words->own += strstr(own_words, padded) != NULL;
}

/* A digit of "code 137" or "signal 9", which say no more than a word. */
static bool
of_code(const char *line, size_t first, size_t at)
{
	if ((at > first && isalpha((unsigned char)line[at - 1])) || isalpha((unsigned char)line[at + 1]))
		return true; /* of a name */
	while (at > first && isdigit((unsigned char)line[at - 1]))
		at--;
	return (at >= first + 5 && tn__find(line + at - 5, 5, "code ") != NULL) ||
	       (at >= first + 7 && tn__find(line + at - 7, 7, "signal ") != NULL);
}

static bool
count_words(const char *line, size_t first, size_t last, struct words *words)
{
	size_t begin = first;
	for (size_t i = first; i <= last; i++) {
		if (i < last && isdigit((unsigned char)line[i]) && !of_code(line, first, i))
			return false;
		if (i < last && isalpha((unsigned char)line[i]))
			continue;
		count_word(line + begin, i - begin, words);
		begin = i + 1;
	}
	return true;
}

/* "...: RuntimeError: CUDA ...": somebody shows an error, whatever leads to it. */
static bool
shown(const char *line, size_t start)
{
	if (start < 9 || tn__find(line + start - 7, 7, "error: ") == NULL)
		return false;
	size_t head = start - 2;
	while (head > 0 && (isalnum((unsigned char)line[head - 1]) || strchr("._", line[head - 1]) != NULL))
		head--;
	return head > 1 && line[head - 1] == ' ' && line[head - 2] == ':';
}

/* "1. Out of memory", "- CUDA out of memory" */
static bool
item(const char *line, size_t start)
{
	size_t i = 0;
	while (i < start && line[i] == ' ')
		i++;
	if (i + 1 < start && strchr("-*", line[i]) != NULL && line[i + 1] == ' ')
		return true;
	size_t digits = i;
	while (i < start && isdigit((unsigned char)line[i]))
		i++;
	return i > digits && i - digits < 3 && i + 1 < start && strchr(".)", line[i]) != NULL && line[i + 1] == ' ';
}

bool
tn__line_teaches(const char *line, size_t length, size_t start, size_t end)
{
	struct sentence sentence = around(line, length, start, end);
	struct words words = { 0, 0, 0, 0 };
	if (shown(line, start))
		return false;
	if (!count_words(line, sentence.first, start, &words))
		return false;
	/* a report opens its line, but for its head; what opens an item of a list may be anything */
	bool led_to = words.plain + words.general > 0 || item(line, start);
	if (!count_words(line, end, sentence.last, &words))
		return false;
	return led_to && words.all >= 6 && words.plain >= 3 && words.general >= 1 && words.own == 0;
}

bool
tn__line_prose_before(const char *line, size_t start)
{
	struct sentence sentence = around(line, start, start, start);
	struct words words = { 0, 0, 0, 0 };
	count_words(line, sentence.first, start, &words);
	return words.plain >= 3 && words.own == 0;
}

/* Words of one who writes to others; "we" and "our" are a company's, too. */
static const char person_words[] =
	" i i'm i've i'd my me mine im ive myself please thanks thank hello hi anyone someone somebody same guys btw "
	"sorry dear hey regards ";

/* What is the matter. */
static const char trouble_words[] =
	" error errors problem problems issue issues crash crashes crashed crashing fail fails failed failing failure kill "
	"killed kills stuck stops stopped dies died breaks broken bug wrong trouble unable help cause causes reason ";

/* What one wishes is no trouble. */
static const char wish_words[] =
	" would could should wish like suggest propose add adds added adding support supports handle handles handling "
	"handled implement implements implemented fix fixes fixed fixing resolves closes avoid avoids prevent prevents "
	"improve improves reduce reduces feature proposal catch catches ";

/* A page that speaks of itself, or a change. */
static const char lectures[] =
	"this article|this guide|this post|this blog|this tutorial|this section|this chapter|let's |we will |we'll |tips|"
	"this pr |this pull request|this patch|this commit|this change|feature request|changelog|release notes|"
	"the solution you'd like|would be nice|would be great|lgtm";

/* A line with a level or a time of a log. A person writes "error" in small letters, and in a title as he likes. */
static bool
of_log(const char *line, size_t length, bool title)
{
	static const char *const levels[] = { "INFO", "WARN", "ERROR", "DEBUG", "[info", "[warn", "[error", "[debug" };
	size_t most = length < 40 ? length : 40;
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		const char *found = strstr(line, levels[i]);
		if (found != NULL && found < line + most && !title)
			return true;
	}
	return length > 1 && line[0] == '[' && isdigit((unsigned char)line[1]);
}

void
tn__voice_read(struct tn_voice *voice, const char *line, size_t length, bool title)
{
	size_t all = 0, plain = 0, general = 0, own = 0, begin = 0, trouble = 0, wish = 0, asks = 0;
	char padded[24] = " ";
	if (of_log(line, length, title))
		return;
	for (size_t i = 0; i <= length; i++) {
		bool letter = i < length && (isalpha((unsigned char)line[i]) || line[i] == '\'');
		if (!letter && i > begin && i - begin <= 20) {
			for (size_t k = begin; k < i; k++)
				padded[1 + k - begin] = (char)tolower((unsigned char)line[k]);
			padded[i - begin + 1] = ' ';
			padded[i - begin + 2] = '\0';
			all++;
			plain += strstr(plain_words, padded) != NULL;
			general += strstr(general_words, padded) != NULL;
			own += strstr(person_words, padded) != NULL;
			trouble += strstr(trouble_words, padded) != NULL;
			wish += strstr(wish_words, padded) != NULL;
			asks += strstr(" how why solve ", padded) != NULL;
		}
		if (!letter)
			begin = i + 1;
		if (i < length && !(strchr(".?!", line[i]) != NULL && (i + 1 == length || line[i + 1] == ' ')))
			continue;
		voice->own += own > 0 || (i < length && line[i] == '?');
		voice->general += own == 0 && all >= 6 && plain >= 3 && general >= 1;
		bool code = tn__line_is_code(line, length) || (title && strchr(line, '=') != NULL && strchr(line, '?') == NULL);
		voice->trouble += code ? 0
		                       : ((own > 0 || title) && trouble > 0 && wish == 0) || (own > 0 && asks > 0 && !title);
		all = plain = general = own = trouble = wish = asks = 0;
	}
	voice->lectures += tn__has_any(line, length, lectures);
	voice->others += tn__has_any(line, length, "illegal memory access|device-side assert|invalid argument") ||
	                 (tn__has_any(line, length, "error: ") && !tn__has_any(line, length, "memory|oom|alloc|vram"));
}

bool
tn__voice_teaches(const struct tn_voice *voice)
{
	return voice->own == 0 && voice->general >= 2;
}

bool
tn__voice_complains(const struct tn_voice *voice)
{
	return voice->trouble > 0 && voice->lectures == 0 && voice->others == 0 && voice->general <= voice->own + 1;
}
