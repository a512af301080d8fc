/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether somebody tells that memory ran out for him: in a sentence of his, or in the title of his thread.
 *
 * Who had it says so ("I get", "my GPU", "it crashed with"). Who fears, avoids, mends or teaches it has other words
 * before it, which hold until the clause ends or he speaks of himself: "how do I avoid", but "I wonder why I get".
 * A title is a report unless it wishes something. Every function is linear in its line.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "message/internal_message.h"
#include "message/words_of_line.h"

/* ---- words ---- */

/* Words of one who writes of his own program. */
static const char own_words[] = " i i'm i've i'll my me mine im ive ";
static const char our_words[] = " we we're our us ";

/* An error came ... */
static const char came_words[] =
	" happend happens happened get gets got getting hit hits hitting encounter encounters encountered encountering "
	"face faced facing receive receives received throw throws threw raises raised "
	"give gives gave produces produced report reports reported say says said show shows showed showing fail fails "
	"failed failing crash crashes crashed crashing dies died die meet met cause caused causes return returns returned "
	"ends ended ending lead leads led result results resulted trigger triggers triggered stopped exits exited "
	"emit emits emitted print prints printed complain complains complained complaining experience experiences "
	"experienced experiencing suffer suffers suffered suffering observe observed observing notice noticed bump "
	"bumped spit spits display displays displayed output outputs yield yields yielded giving raising reporting ";

/* ... if nothing but small words stand between them and it ... */
static const char weak_words[] =
	" into see seeing saw have has had having was were been be run runs ran running go goes went "
	"going came comes killed kills keeps of out ";

/* ... once, not whenever. */
static const char once_words[] =
	" got hit ran went threw raised gave died crashed failed returned ended resulted led came "
	"killed stopped exited triggered reported was ";

/* What it is now, if nothing says before, after or without what. */
static const char now_words[] =
	" getting hitting seeing encountering crashing failing throwing facing leading resulting causing ";
static const char turning_words[] = " before after when while without by and for of to from if until ";

static const char small_words[] =
	" with to in into a an the by of due because on from this that out cuda gpu error always "
	"still some same kernel out hip torch being got getting ";

/* It may come, or must not. */
static const char doubt_words[] =
	" avoid avoids avoided avoiding circumvent circumvents eliminate eliminates mitigate mitigates overcome prevent prevents preventing fix fixes fixed fixing may might could would should can "
	"will without possible potential potentially no not never don't doesn't didn't won't cannot often typically usually commonly you your users user "
	"handle handles handling catch catches catching detect instead reduce reduces how why previously unlikely likely "
	"supposed whether ";
static const char if_words[] = " if unless until whenever ";

/* Somebody advises. */
static const char advice_words[] =
	" how why may might avoid prevent fix fixing resolve resolving solve solving help your "
	"you often common commonly ";

/* What a title wishes, asks or announces, wherever it stands ... */
static const char wish_words[] =
	" address addresses addressing against alleviate allow automatic automatically avoid avoiding aware better bypass can cannot catch catching clarified possible potential "
	"circumvent clarify convert cope correct could deal dealing detect detection diagnose disable eliminate enable enhance ensure explain "
	"explained fallback fix fixed fixes fixing give graceful gracefully guard handle handler handles "
	"handling how if implement implements improve improved include indicate interpret interprets "
	"introduce lessen may might minimise minimize mitigate nice often optimise optimize overcome overcoming predict prevent preventing prevents "
	"propagate proposal provide recover recovery reduce reducing refactor relaunch remove resolve "
	"resolved resolves resolving restart restarting rfc risk risking should simulate solve solving survive tackle testing throw tips "
	"troubleshoot troubleshooting understand understanding warn warning what will without wording "
	"workaround would wrap wtf ";

/* ... or where it is an order: before any other word, behind a colon or a bracket. */
static const char order_words[] =
	" add adds set log message messages test tests tell safe measure report reporting request describe "
	"update check print info policy option language limit support monitor use track skip skipping hint "
	"hints make more show raise capture expose flag guide document debug debugging edit exit estimate "
	"retry count tag mention mock lower auto back halve wrap stop keep move split replace rename bump drop free clear "
	"release offload cache pin cap clamp bound apply switch revert cleanup clean delete ignore lessen shrink double "
	"chunk stream defer delay throttle backoff bail ensure adjust rework rewrite simplify document increase decrease ";

/* What a title is of, before a colon or in brackets: "[Docs]", "feat:". */
static const char tag_words[] = " docs doc feat perf chore todo note tip example faq feature rfc proposal runbook ";

/* What tells when or where behind a title's words. */
static const char where_words[] =
	" at in on upon into within inside across over under past beyond through throughout via per as than about near once where "
	"while during when with by for to trying allocating from after of and or but even still although though "
	"despite finally eventually immediately sometimes randomly always using running training loading every again since before until only because due occurred encountered raised "
	"thrown happened appeared within code under despite whilst if what how please help need ";

/* Words that a phrase may belong to. */
static const char opening_words[] = " still same again here always immediately also then now another ";

static bool
among(const char *words, const char *word)
{
	return strstr(words, word) != NULL;
}

/* The word before `at`, behind blanks and quotes. */
static size_t
word_before(const char *line, size_t at, char padded[24])
{
	while (at > 0 && strchr(" \"'`*_(,", line[at - 1]) != NULL)
		at--;
	return tn__word_ending(line, at, padded);
}

/* Whether one of the words, separated by '|', ends right before `at`, behind blanks and quotes. */
static bool
led_by(const char *line, size_t at, const char *words)
{
	while (at > 0 && strchr(" \"'`*_(,:", line[at - 1]) != NULL)
		at--;
	for (size_t size; *words != '\0'; words += size + (words[size] == '|')) {
		size = strcspn(words, "|");
		if (size <= at && strncasecmp(line + at - size, words, size) == 0)
			return true;
	}
	return false;
}

/* ---- sentences ---- */

size_t
tn__sentence_start(const char *line, size_t start)
{
	for (; start > 0; start--)
		if (start > 1 && line[start - 1] == ' ' && strchr(".?!", line[start - 2]) != NULL &&
		    !(start > 3 && line[start - 4] == '.')) /* not "e.g. " */
			break;
	return start;
}

struct tn_heard
tn__hear(const char *line, size_t first, size_t last)
{
	struct tn_heard heard = { false, false, false, false, false, false };
	bool if_open = false, by_will = false, weak = false, strong = false,
		 alone = tn__has_any(line, last, " i | my | i'm ") || strncmp(line, "My ", 3) == 0;
	char word[24], before[24] = "  ";
	for (size_t i = first + 1; i <= last; i++) {
		bool letter = i < last && (isalpha((unsigned char)line[i]) || line[i] == '\'');
		if (i < last && strchr(",;:", line[i]) != NULL && (heard.alone || alone))
			if_open = heard.doubted = false;
		if (letter || !(isalpha((unsigned char)line[i - 1])) || tn__word_ending(line, i, word) == 0)
			continue;
		if (among(own_words, word) || among(our_words, word)) {
			heard.own = true;
			heard.alone |= among(own_words, word);
			heard.doubted &= if_open;
		}
		bool joins = among(small_words, word);
		weak = among(weak_words, word) || (weak && joins);
		strong |= among(came_words, word);
		heard.came = strong || weak;
		bool now = among(now_words, word) && !among(turning_words, before);
		now |= strcmp(before, " now ") == 0 && among(came_words, word);
		bool whenever = among(" being are is be get gets ", before); /* "processes being killed" */
		heard.once = (among(once_words, word) && !whenever) || now || (heard.once && joins);
		if_open |= among(if_words, word) && (strcmp(before, " even ") != 0 || !alone);    /* "even if I ..." came */
		if (by_will && alone && strcmp(before, " will ") == 0 && among(came_words, word)) /* "my code will show" */
			heard.doubted = false;
		by_will = !heard.doubted && strcmp(word, " will ") == 0;
		heard.doubted |= if_open || among(doubt_words, word);
		heard.advised |= among(advice_words, word);
		memcpy(before, word, sizeof(before));
	}
	return heard;
}

/* Where the phrase ends with what belongs to it: the rest of its name, "s", quotes, "(OOM)", "error". */
static size_t
whole_end(const char *line, size_t length, size_t end, bool *plural)
{
	while (end < length && tn__name_char(line[end]))
		end++;
	*plural = end > 0 && line[end - 1] == 's';
	for (;;) {
		size_t before = end;
		while (end < length && strchr("\"'`*_", line[end]) != NULL)
			end++;
		if (strncasecmp(line + end, " (oom)", 6) == 0)
			end += 6;
		static const char *const nouns[] = { "error", "exception", "issue", "problem", "crash", "failure", "kill" };
		for (size_t i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++) {
			size_t size = strlen(nouns[i]), at = end;
			if (at < length && strchr(" -", line[at]) != NULL)
				at++;
			if (strncasecmp(line + at, nouns[i], size) != 0)
				continue;
			at += size;
			*plural = at < length && line[at] == 's';
			at += *plural;
			if (strncasecmp(line + at, "ed", 2) == 0 || strncasecmp(line + at, "er", 2) == 0) /* "killed" */
				at += 2;
			if (at >= length || !tn__name_char(line[at]))
				end = at;
		}
		if (end == before)
			return end;
	}
}

/* Whether what follows the phrase at `end` says that it came: "... appeared". */
static bool
came_behind(const char *line, size_t length, size_t end, bool own)
{
	while (end < length && line[end] == ' ')
		end++;
	if (tn__begins_with(
			line + end, length - end,
			"appeared|occurred|occured|happened|happend|started|began|arose|came up|popped up|was thrown|was raised|was reported",
			false))
		return true;
	return own &&
	       tn__begins_with(
			   line + end, length - end,
			   "appears|appers|apears|occurs|happens|will occur|will appear|will happen|comes up|pops up|shows up|is thrown|is raised|persists",
			   true);
}

static bool
has_digit(const char *line, size_t first, size_t last)
{
	for (; first < last; first++)
		if (isdigit((unsigned char)line[first]))
			return true;
	return false;
}

/* "it OOMs", "training OOMed" */
static bool
verb(const char *line, size_t start, size_t end)
{
	static const char subjects[] = " it this training model process server script still always just immediately run "
								   "job worker i inference kernel session ";
	char word[24];
	bool form = line[end - 1] == 'M' &&
	            ((line[end] == 's' && !tn__name_char(line[end + 1])) || strncasecmp(line + end, "ed", 2) == 0 ||
	             strncasecmp(line + end, "'d", 2) == 0);
	return form && word_before(line, start, word) > 0 && among(subjects, word);
}

/* The same in Chinese: that it comes up, is shown, is met; and that it is feared, avoided, asked for. */
static bool
told_in_chinese(const char *line, size_t length, size_t start)
{
	static const char came[] =
		"\xe6\x8a\xa5\xe9\x94\x99|\xe5\x87\xba\xe7\x8e\xb0|\xe9\x81\x87\xe5\x88\xb0|\xe6\x8f\x90\xe7\xa4\xba|"
		"\xe5\x8f\x91\xe7\x94\x9f|"
		"\xe6\x98\xbe\xe7\xa4\xba|\xe4\xbc\x9a|\xe4\xb8\x80\xe7\x9b\xb4|\xe6\x80\xbb\xe6\x98\xaf|\xe7\x9b\xb4\xe5\x88\xb0|"
		"\xe5\xaf\xbc\xe8\x87\xb4|"
		"\xe6\x8a\xa5|"
		"\xe5\x87\xba\xe7\x8e\xb0|"
		"\xe7\x88\x86|"
		"\xe6\x8f\x90\xe7\xa4\xba";
	static const char doubted[] =
		"\xe5\xa6\x82\xe6\x9e\x9c|\xe9\x81\xbf\xe5\x85\x8d|\xe9\x98\xb2\xe6\xad\xa2|\xe5\x8f\xaf\xe8\x83\xbd|"
		"\xe5\xa6\x82\xe4\xbd\x95|\xe4\xb8\x8d\xe4\xbc\x9a|\xe8\x8b\xa5|\xe6\x98\xaf\xe4\xb8\x8d\xe6\x98\xaf|"
		"\xe6\x98\xaf\xe5\x90\xa6|\xe5\xbb\xba\xe8\xae\xae";
	static const char own[] = "\xe6\x97\xa0\xe6\xb3\x95\xe5\xae\x8c\xe6\x88\x90|"
							  "\xe6\x88\x91|\xe8\xaf\xb7\xe9\x97\xae|\xe4\xb9\x9f\xe4\xbc\x9a|\xe8\xbf\x98\xe6\x98\xaf|"
							  "\xe4\xb8\xba\xe4\xbb\x80\xe4\xb9\x88|"
							  "\xe4\xbb\x80\xe4\xb9\x88\xe5\x8e\x9f\xe5\x9b\xa0|"
							  "\xe6\x80\x8e\xe4\xb9\x88\xe5\x9b\x9e\xe4\xba\x8b|"
							  "\xe4\xbd\x9c\xe8\x80\x85|"
							  "\xe5\xa4\xa7\xe4\xbd\xac|"
							  "\xe6\x82\xa8\xe5\xa5\xbd|"
							  "\xe4\xbd\xa0\xe5\xa5\xbd|"
							  "\xe6\xb1\x82\xe5\x8a\xa9"; /* I, please, too, still */
	size_t from = start > 90 ? start - 90 : 0;
	bool speaks = (unsigned char)line[start] >= 0x80 || tn__has_any(line + from, start - from, came);
	if (tn__has_any(line + start, length - start < 40 ? length - start : 40, "\xe5\x90\x97")) /* a question whether */
		return false;
	return (tn__has_any(line, length, own) || has_digit(line, 0, length)) && speaks &&
	       !tn__has_any(line + from, start - from, doubted);
}

/* "When does it run out of memory?" */
static bool
asks_in_general(const char *sentence, size_t length)
{
	return tn__begins_with(sentence, length,
	                       "When does|When do|When will|What happens|What if|How does|How do|Is there|Is it possible",
	                       false);
}

bool
tn__line_told(const char *line, size_t length, size_t start, size_t end)
{
	size_t first = tn__sentence_start(line, start);
	struct tn_heard heard = tn__hear(line, first, start);
	bool plural, alone = heard.alone || tn__has_any(line, length, " i | my | i'm | i've | for me") ||
	                     strncmp(line, "I ", 2) == 0;
	size_t after = whole_end(line, length, end, &plural);
	char word[24];
	if (verb(line, start, end))
		return !heard.doubted;
	if ((plural && !alone) || tn__line_is_title(line, length))
		return false;
	if (alone &&
	    tn__has_any(line + first, start - first, "this error|following error|error message|the problem|this problem"))
		return true;
	if (led_by(line, start, "result is|result was|error is|error was|it says|message is") && !heard.doubted)
		return true;
	if (heard.doubted || (!alone && asks_in_general(line + first, length - first)))
		return false;
	if (told_in_chinese(line, length, start))
		return true;
	if (strncasecmp(line + start, "killed", 6) == 0) /* its own verb */
		return led_by(line, start, "got|get|gets|getting|was|is|are|been|being|be|were|with|ends up|ended up") &&
		       (heard.own || alone);
	bool general = tn__has_any(line + first, start - first, "when |where |that |which |indicat|means");
	if (came_behind(line, length, after, false))
		return true;
	if (alone && came_behind(line, length, after, true))
		return true;
	word_before(line, start, word);
	if (alone && (among(" always still again ", word) ||
	              tn__has_any(line + start, end - start, " is |not enough|insufficient|not sufficient")))
		return true;
	bool opens = (start <= first + 3 || among(opening_words, word)) && after < length && line[after] == ' ';
	if (opens && (alone || (has_digit(line, after, length) && !tn__line_teaches(line, length, start, end)))) {
		size_t last = after + 1;
		while (last < length && isalpha((unsigned char)line[last]))
			last++;
		if (tn__word_ending(line, last, word) > 0 && among(where_words, word))
			return true;
		word_before(line, start, word);
	}
	if (heard.own && !general &&
	    led_by(line, start, "are running|is running|keep running|keeps running|started running"))
		return true;
	if (!heard.came)
		return false;
	if (heard.alone || alone || (heard.own && heard.once) || (strcmp(word, " with ") == 0 && line[after] != ','))
		return true;
	size_t stop = after;
	while (stop < length && !(strchr(".?!", line[stop]) != NULL && (stop + 1 == length || line[stop + 1] == ' ')))
		stop++;
	if (tn__has_any(line + after, stop - after, " you | your | often| typically| usually| may | occurs"))
		return false;
	return heard.once && !general && !tn__begins_with(line + first, length - first, "An|A|- An|- A", false);
}

/* ---- titles ---- */

bool
tn__line_is_title(const char *line, size_t length)
{
	return length < 260 && strncmp(line, "# ", 2) == 0;
}

/* "Out of Memory", as a heading spells it, too. */
bool
tn__line_is_heading(const char *line, size_t length)
{
	return strstr(line, "f Memory") != NULL && !has_digit(line, 0, length) && strchr(line, ':') == NULL;
}

/* Whether the words of a title before `last` wish, ask or announce something. */
static bool
wishes(const char *line, size_t last, bool came)
{
	static const char nouns[] = " in during when while at on after before the my by of ";
	char word[24], before[24] = "";
	bool wish = false, asks_why = false;
	for (size_t i = 3; i <= last; i++) {
		if (i < last && strchr(",;", line[i]) != NULL) /* another clause */
			wish = false;
		bool letter = i < last && (tn__name_char(line[i]) || strchr("'-/", line[i]) != NULL);
		if (letter || !isalpha((unsigned char)line[i - 1]) || tn__word_ending(line, i, word) == 0)
			continue;
		if (among(own_words, word))
			wish = false;
		asks_why |= strcmp(word, " why ") == 0;
		size_t first = i - strlen(word) + 2;
		while (first > 2 && strchr(" \"'`*", line[first - 1]) != NULL)
			first--;
		bool order = before[0] == '\0' || strchr(":])/-", line[first - 1]) != NULL ||
		             among(" to please and or ", before);
		bool wished = among(wish_words, word) || (order && among(order_words, word));
		wish |= wished && !asks_why && (before[0] == '\0' || !among(nouns, before));
		wish |= !came && among(tag_words, word) && i < last && strchr(":])(", line[i]) != NULL;
		memcpy(before, word, sizeof(before));
	}
	return wish;
}

/* "...: How to", "... - Causes": the title of a page, if nobody asks. */
static bool
announces(const char *line, size_t length, size_t at)
{
	if (line[length - 1] == '?')
		return false;
	while (at < length && (strchr(" :|-", line[at]) != NULL || (unsigned char)line[at] >= 0x80))
		at++;
	return tn__begins_with(
		line + at, length - at,
		"how|fix|fixes|fixing|cause|causes|what|why|solution|solutions|guide|explained|resolving|solving|tips|"
		"a guide|the guide|gpu fix|common|understanding|troubleshooting|analysis|complete",
		true);
}

/* "[Bug]: ...", "[BUG] ...", "Bug: ...": whatever it says, it reports. */
static bool
tagged_as_bug(const char *line, size_t length)
{
	size_t at = 2 + (line[2] == '[');
	return length > at + 4 && strncasecmp(line + at, "bug", 3) == 0 && strchr("]: ", line[at + 3]) != NULL &&
	       (line[2] == '[' || line[at + 3] == ':') && !tn__has_any(line, length, "fix|handl|prevent|avoid");
}

bool
tn__title_wishes(const char *line, size_t length, size_t start, size_t end)
{
	if (!tn__line_is_title(line, length) || tagged_as_bug(line, length))
		return false;
	bool plural;
	size_t after = whole_end(line, length, end, &plural);
	return wishes(line, start, false) ||
	       (after < length && strchr(" :|-", line[after]) != NULL && announces(line, length, after));
}

/* "It seems to be ...", "I think it is caused by ...": what somebody takes for the reason. */
static bool
diagnosed(const char *line, size_t first, size_t start)
{
	static const char guesses[] =
		"seems|looks like|look like|sounds like|implies|probably|i think|i guess|i suspect|i believe|"
		"likely|due to|because|caused by|problem is|reason is|cause is|issue is|must be|this is |that is |that's |"
		"problem of|issue of";
	static const char denials[] = " not |n't |avoid|prevent|handl|catch|fix|without|reduc|instead|solve|whether";
	return tn__has_any(line + first, start - first, guesses) && !tn__has_any(line + first, start - first, denials);
}

bool
tn__line_may_tell(const char *line, size_t length, size_t start, size_t end)
{
	size_t first = tn__sentence_start(line, start);
	struct tn_heard heard = tn__hear(line, first, start);
	bool plural;
	if (tn__line_is_title(line, length))
		return !tn__title_wishes(line, length, start, end);
	if (tn__line_teaches(line, length, start, end))
		return false;
	bool noun = whole_end(line, length, end, &plural) > end + 3; /* "... error" */
	return ((heard.came || heard.own || noun) && !heard.doubted) || diagnosed(line, first, start);
}

/* `tf_export("errors.ResourceExhaustedError")` */
static bool
in_call(const char *line, size_t start)
{
	while (start > 0 && (tn__name_char(line[start - 1]) || strchr("\"'.", line[start - 1]) != NULL))
		start--;
	return start > 1 && line[start - 1] == '(' && tn__name_char(line[start - 2]);
}

bool
tn__title_reports(const char *line, size_t length, size_t start, size_t end)
{
	bool plural;
	size_t after = whole_end(line, length, end, &plural);
	if (tn__line_is_title(line, length) && tagged_as_bug(line, length))
		return true;
	if (!tn__line_is_title(line, length) || wishes(line, start, came_behind(line, length, after, true)) ||
	    in_call(line, start))
		return false;
	char word[24];
	bool whole = after < length && strchr(".!", line[after]) != NULL; /* a sentence of its own */
	while (after < length && strchr(".!", line[after]) != NULL)
		after++;
	if (tn__word_ending(line, length, word) > 0 && among(" fix fixes patch ", word) &&
	    line[after] != ':') /* "oom and leak fix" */
		return false;
	bool led = word_before(line, start, word) > 0 && (among(came_words, word) || among(weak_words, word));
	if (among(" no not never without ", word))
		return false;
	if (after >= length || line[after] == '?')
		return !plural || led;
	if (line[after] != ' ')
		return !tn__name_char(line[after]) && line[after] != '-' && !announces(line, length, after);
	while (after < length && line[after] == ' ')
		after++;
	if (whole)
		return !announces(line, length, after);
	if (strncmp(line + after, "to be", 5) == 0)
		return false;
	if (!isalpha((unsigned char)line[after]))
		return !announces(line, length, after);
	if (tn__word_ending(line, end, word) > 0 &&
	    strncmp(word, " alloc", 6) == 0) /* what it could not allocate follows */
		return true;
	size_t last = after;
	while (last < length && isalpha((unsigned char)line[last]))
		last++;
	return tn__word_ending(line, last, word) > 0 && (among(where_words, word) || among(" occurs happens ", word));
}
