/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the program as execvp would, before anything is made for it, and writes its command line for people.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/secrets.h"
#include "supervise/internal.h"

/* 0 when it can be executed, else why not. */
static int
check(const char *path)
{
	struct stat about;
	if (stat(path, &about) != 0)
		return errno;
	if (!S_ISREG(about.st_mode) || access(path, X_OK) != 0)
		return EACCES;
	return 0;
}

/* Looks in $PATH; 0, ENOENT or EACCES (found, but not executable). */
static int
search(const char *name, char path[PATH_MAX])
{
	const char *at = getenv("PATH");
	int answer = ENOENT;
	if (at == NULL)
		at = "/usr/local/bin:/usr/bin:/bin";
	while (true) {
		size_t length = strcspn(at, ":");
		if (length + strlen(name) + 2 < PATH_MAX) {
			snprintf(path, PATH_MAX, "%.*s/%s", length > 0 ? (int)length : 1, length > 0 ? at : ".", name);
			int why = check(path);
			if (why == 0)
				return 0;
			if (why == EACCES)
				answer = EACCES;
		}
		if (at[length] == '\0')
			return answer;
		at += length + 1;
	}
}

tn_status
tn__program_find(const char *name, char path[PATH_MAX], int *exit_status)
{
	int why = ENOENT;
	if (strchr(name, '/') == NULL && name[0] != '\0') {
		why = search(name, path);
	} else if (strlen(name) < PATH_MAX) {
		strcpy(path, name);
		why = check(path);
	}
	if (why == 0)
		return TN_OK;
	bool missing = why == ENOENT || why == ENOTDIR;
	*exit_status = missing ? TN_EXIT_NOT_FOUND : TN_EXIT_NOT_EXECUTABLE;
	return missing ? tn__fail(TN_NOT_FOUND, "program not found: %s", name)
	               : tn__fail(TN_INVALID, "program cannot be executed: %s", name);
}

static bool
needs_quotes(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
	return word[0] == '\0' || strspn(word, plain) != strlen(word);
}

char *
tn__program_quote(char *const *arguments)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	struct tn_secrets *secrets = tn__secrets_of(arguments, environ);
	for (int i = 0; arguments[i] != NULL; i++) {
		char *plain = tn__mask_secrets(arguments[i], i > 0 ? arguments[i - 1] : NULL);
		char *masked = plain != NULL ? tn__mask_known(secrets, plain)
		                             : NULL; /* the same value may be part of another word */
		const char *word = masked != NULL ? masked : "***";
		bool quoted = needs_quotes(word);
		fprintf(out, "%s%s", i > 0 ? " " : "", quoted ? "'" : "");
		for (; *word != '\0'; word++)
			fputs(*word == '\'' ? "'\\''" : (char[2]){ *word, '\0' }, out);
		if (quoted)
			fputc('\'', out);
		free(plain);
		free(masked);
	}
	tn__secrets_free(secrets);
	fclose(out);
	return text;
}

void
tn__program_put_option(FILE *out, const char *option, const char *value)
{
	char *quoted = tn__program_quote((char *[]){ (char *)(uintptr_t)value, NULL });
	if (quoted != NULL)
		fprintf(out, "%s %s ", option, quoted);
	free(quoted);
}

char *
tn__program_options(const struct tn_run_options *options)
{
	static const char *const weights[] = { [TN_WEIGHTS_SHAPE] = "shape", [TN_WEIGHTS_REAL] = "real" };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	if (options->real_initialization)
		fprintf(out, "--init real ");
	if (options->all_values)
		fprintf(out, "--values all ");
	if (options->weights != TN_WEIGHTS_AUTO)
		fprintf(out, "--weights %s ", weights[options->weights]);
	if (options->data_shape)
		fprintf(out, "--data shape ");
	if (options->cells != NULL)
		fprintf(out, "--cells %s ", options->cells);
	if (options->python != NULL)
		tn__program_put_option(out, "--python", options->python);
	if (options->keep_going)
		fprintf(out, "--keep-going ");
	fclose(out);
	return text;
}
