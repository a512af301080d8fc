/* SPDX-License-Identifier: Apache-2.0
 *
 * By name and by form. What is only likely is left: a word too much that is hidden makes a command useless, and figures ("--max-token=5")
 * are no secrets.
 */
#include "base/array.h"
#include "base/secrets.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool
ends_with(const char *text, size_t length, const char *end)
{
	size_t size = strlen(end);
	return length >= size && strncasecmp(text + length - size, end, size) == 0;
}

/* "--hf-token", "WANDB_API_KEY", "db.password". Tokens of a tokenizer are none. */
static bool
is_secret_name(const char *name, size_t length)
{
	static const char *const ends[] = { "apikey",     "api-key",    "api_key",     "access-key",  "access_key",
		                                "secret",     "secret-key", "secret_key",  "password",    "passwd",
		                                "passphrase", "credential", "credentials", "private-key", "private_key",
		                                "wandb-key",  "wandb_key",  "auth",        "_pass",       "-pass" };
	static const char *const harmless[] = { "pad",     "eos",         "bos",      "unk",         "mask",  "sep",
		                                    "cls",     "special",     "image",    "stop",        "start", "end",
		                                    "max",     "min",         "per",      "new",         "video", "audio",
		                                    "trigger", "placeholder", "instance", "initializer", "class", "prefix",
		                                    "suffix",  "no",          "use" };
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends_with(name, length, ends[i]))
			return true;
	if (!ends_with(name, length, "token"))
		return false;
	length -= strlen("token");
	while (length > 0 && !isalnum((unsigned char)name[length - 1]))
		length--;
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (ends_with(name, length, harmless[i]))
			return false;
	return true;
}

static bool
is_secret_value(const char *value, size_t length)
{
	static const char *const plain[] = { "true", "false", "none", "null", "yes", "no" };
	size_t digits = strspn(value, "0123456789.,e-");
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (length == strlen(plain[i]) && strncasecmp(value, plain[i], length) == 0)
			return false;
	return length > 0 && digits < length && value[0] != '$' && value[0] != '{' && value[0] != '<';
}

/* The length of a secret of a known form that begins here; 0. Names of files may begin in the same way: where no other sign tells
 * them apart, some letters and digits in a row do. */
static size_t
known_form(const char *text)
{
	static const struct {
		const char *start;
		size_t least, in_a_row;
	} forms[] = { { "hf_", 20, 16 },       { "sk-", 20, 16 },         { "ghp_", 20, 16 },  { "gho_", 20, 16 },
		          { "ghs_", 20, 16 },      { "github_pat_", 20, 16 }, { "glpat-", 16, 0 }, { "xoxb-", 16, 0 },
		          { "xoxp-", 16, 0 },      { "AKIA", 16, 16 },        { "ASIA", 16, 16 },  { "AIza", 30, 0 },
		          { "eyJhbGciOi", 20, 0 }, { "npm_", 30, 16 },        { "pypi-", 40, 16 } };
	if (strchr("hsgxAenp", *text) == NULL)
		return 0;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t start = strlen(forms[i].start), row = 0, longest = 0;
		if (strncmp(text, forms[i].start, start) != 0)
			continue;
		size_t length = start;
		for (; isalnum((unsigned char)text[length]) || (text[length] != '\0' && strchr("_-.", text[length]) != NULL);
		     length++) {
			row = isalnum((unsigned char)text[length]) ? row + 1 : 0;
			longest = row > longest ? row : longest;
		}
		if (length - start >= forms[i].least && longest >= forms[i].in_a_row)
			return length;
	}
	return 0;
}

/* The password in "scheme://user:password@host" that begins at this "://"; 0 where there is none. */
static size_t
password_of(const char *text, size_t *from)
{
	size_t end = strcspn(text + 3, "/ \t\"'") + 3;
	const char *at = memrchr(text, '@', end),
			   *colon = at != NULL ? memchr(text + 3, ':', (size_t)(at - text) - 3) : NULL;
	if (colon == NULL)
		return 0;
	*from = (size_t)(colon - text) + 1;
	return (size_t)(at - colon) - 1;
}

/* A secret behind its name in a sentence, that begins behind this "=" or ":" of `text`: "?token=...", "api_key='...'",
 * "{'password': '...'}". Its length, and how far behind the sign it begins; 0. */
static size_t
named_in_text(const char *text, const char *sign, size_t *from)
{
	const char *end = sign, *name, *value = sign + 1;
	if (end > text && (end[-1] == '"' || end[-1] == '\''))
		end--;
	for (name = end; name > text && (isalnum((unsigned char)name[-1]) || strchr("_-.", name[-1]) != NULL); name--)
		;
	if (name == end || !is_secret_name(name, (size_t)(end - name)))
		return 0;
	value += strspn(value, " ");
	bool quoted = *value == '"' || *value == '\'';
	const char quote[] = { quoted ? *value++ : ' ', '\0' };
	size_t length = strcspn(value, quoted ? quote : " \t\n,;&\"')]}>");
	*from = (size_t)(value - sign);
	if (*sign == ':' && !quoted && (length < 8 || strcspn(value, "0123456789") >= length))
		return 0; /* "invalid token: end of text" */
	return is_secret_value(value, length) ? length : 0;
}

/* "Bearer " and what follows it in a header. */
static size_t
bearer_of(const char *text, size_t *from)
{
	*from = strlen("Bearer ");
	if (strncasecmp(text, "Bearer ", *from) != 0)
		return 0;
	size_t length = strcspn(text + *from, " \t\n,;\"')]}>");
	return length >= 8 && strcspn(text + *from, "0123456789") < length ? length : 0;
}

/* `said`: it is a sentence, in which names may tell of secrets, too. */
static void
write_masked(FILE *out, const char *text, size_t length, bool said)
{
	for (size_t i = 0; i < length;) {
		size_t from = 0, size = i == 0 || !isalnum((unsigned char)text[i - 1]) ? known_form(text + i) : 0;
		if (size == 0 && strncmp(text + i, "://", 3) == 0)
			size = password_of(text + i, &from);
		if (size == 0 && said && (text[i] == '=' || text[i] == ':'))
			size = named_in_text(text, text + i, &from);
		if (size == 0 && said && (text[i] == 'B' || text[i] == 'b'))
			size = bearer_of(text + i, &from);
		if (size == 0) {
			fputc(text[i++], out);
			continue;
		}
		fwrite(text + i, 1, from, out);
		fputs("***", out);
		i += from + size;
	}
}

/* The part of a word without blanks that its own name, or the word before it, makes a secret: its length, and where it begins.
 * 0: none of it is. */
static size_t
named_part(const char *word, size_t length, const char *before, size_t before_length, size_t *from)
{
	const char *equals = memchr(word, '=', length);
	size_t name = equals != NULL ? (size_t)(equals - word) : 0;
	bool named = before_length > 1 && before[0] == '-' && memchr(before, '=', before_length) == NULL &&
	             is_secret_name(before, before_length);
	*from = equals != NULL ? name + 1 : 0;
	if (equals != NULL && is_secret_name(word, name) && is_secret_value(equals + 1, length - name - 1))
		return length - name - 1;
	*from = 0;
	return named && word[0] != '-' && is_secret_value(word, length) ? length : 0;
}

/* One word without blanks; `before` names it, or not. */
static void
mask_word(FILE *out, const char *word, size_t length, const char *before, size_t before_length)
{
	size_t from;
	if (named_part(word, length, before, before_length, &from) > 0)
		fprintf(out, "%.*s***", (int)from, word);
	else
		write_masked(out, word, length, false);
}

char *
tn__mask_secrets(const char *word, const char *before)
{
	char *text = NULL;
	size_t size = 0, before_length = before != NULL ? strlen(before) : 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	if (before_length > 1 && before[0] == '-' && strchr(before, '=') == NULL && is_secret_name(before, before_length) &&
	    strpbrk(word, " \t\n") != NULL)
		word = fputs("***", out) == EOF ? word : "";
	while (*word != '\0') {
		size_t blanks = strspn(word, " \t\n"), length = strcspn(word + blanks, " \t\n");
		fwrite(word, 1, blanks, out);
		word += blanks;
		mask_word(out, word, length, before, before_length);
		before = word;
		before_length = length;
		word += length;
	}
	fclose(out);
	return text;
}

/* ---- known values, wherever they turn up ---- */

enum { SHORTEST = 5 }; /* what is shorter turns up in other words, too */

struct tn_secrets {
	size_t count;
	char **values; /* longest first, so that one that begins another leaves nothing of it */
};

static bool
add_value(struct tn_secrets *secrets, const char *value, size_t length)
{
	if (length < SHORTEST)
		return true;
	if (!tn__array_add(&secrets->values, secrets->count, sizeof(*secrets->values)))
		return false;
	secrets->values[secrets->count] = strndup(value, length);
	return secrets->values[secrets->count] != NULL && ++secrets->count > 0;
}

/* The secrets of one word of a list; the words within it are looked at each by itself. */
static bool
add_word(struct tn_secrets *secrets, const char *word, const char *before)
{
	size_t from, before_length = before != NULL ? strlen(before) : 0, length = strlen(word);
	bool good = true;
	if (strpbrk(word, " \t\n") != NULL && before_length > 1 && before[0] == '-' &&
	    is_secret_name(before, before_length))
		good = add_value(secrets, word, length); /* a passphrase */
	while (good && *word != '\0') {
		word += strspn(word, " \t\n");
		length = strcspn(word, " \t\n");
		size_t size = named_part(word, length, before, before_length, &from);
		for (size_t i = 0; size == 0 && i + 3 <= length; i++)
			if (strncmp(word + i, "://", 3) == 0 && (size = password_of(word + i, &from)) > 0)
				from += i;
		good = size == 0 || add_value(secrets, word + from, size);
		before = word;
		before_length = length;
		word += length;
	}
	return good;
}

static int
longer_first(const void *left, const void *right)
{
	size_t one = strlen(*(char *const *)left), other = strlen(*(char *const *)right);
	return one < other ? 1 : one > other ? -1 : 0;
}

struct tn_secrets *
tn__secrets_of(char *const *arguments, char *const *environment)
{
	struct tn_secrets *secrets = calloc(1, sizeof(*secrets));
	bool good = secrets != NULL;
	for (size_t i = 0; good && arguments != NULL && arguments[i] != NULL; i++)
		good = add_word(secrets, arguments[i], i > 0 ? arguments[i - 1] : NULL);
	for (size_t i = 0; good && environment != NULL && environment[i] != NULL; i++) {
		const char *equals = strchr(environment[i], '=');
		if (equals == NULL)
			continue;
		if (is_secret_name(environment[i], (size_t)(equals - environment[i])) &&
		    is_secret_value(equals + 1, strlen(equals + 1)))
			good = add_value(secrets, equals + 1, strlen(equals + 1));
		else
			good = add_word(secrets, equals + 1, NULL);
	}
	if (good && secrets->count > 1)
		qsort(secrets->values, secrets->count, sizeof(*secrets->values), longer_first);
	if (good)
		return secrets;
	tn__secrets_free(secrets);
	return NULL;
}

void
tn__secrets_free(struct tn_secrets *secrets)
{
	for (size_t i = 0; secrets != NULL && i < secrets->count; i++)
		free(secrets->values[i]);
	if (secrets != NULL)
		free(secrets->values);
	free(secrets);
}

static char *
masked(const struct tn_secrets *secrets, const char *text, bool said)
{
	char *known = NULL, *made = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&known, &size);
	if (out == NULL)
		return NULL;
	while (*text != '\0') {
		size_t length = 0;
		for (size_t i = 0; secrets != NULL && i < secrets->count && length == 0; i++)
			if (strncmp(text, secrets->values[i], strlen(secrets->values[i])) == 0)
				length = strlen(secrets->values[i]);
		if (length > 0)
			fputs("***", out);
		else
			fputc(*text, out);
		text += length > 0 ? length : 1;
	}
	fclose(out);
	out = known != NULL ? open_memstream(&made, &size) : NULL;
	if (out != NULL) {
		write_masked(out, known, strlen(known), said);
		fclose(out);
	}
	free(known);
	return made;
}

char *
tn__mask_known(const struct tn_secrets *secrets, const char *text)
{
	return masked(secrets, text, false);
}

char *
tn__mask_said(const struct tn_secrets *secrets, const char *text)
{
	return masked(secrets, text, true);
}

/* A password that is a plain word may be one of the format's own. */
static bool
is_word(const char *value)
{
	return value[strspn(value, "abcdefghijklmnopqrstuvwxyz_")] == '\0';
}

void
tn__blot_known(const struct tn_secrets *secrets, char *bytes, size_t size)
{
	for (size_t i = 0; secrets != NULL && i < secrets->count; i++) {
		size_t length = strlen(secrets->values[i]);
		if (is_word(secrets->values[i]))
			continue;
		for (char *at = bytes, *end = bytes + size;
		     (at = memmem(at, (size_t)(end - at), secrets->values[i], length)) != NULL; at += length)
			memset(at, '*', length);
	}
}
