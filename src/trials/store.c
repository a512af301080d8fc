/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of results. Every file is written beside its name and renamed.
 */
#include "trials/store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "supervise/internal.h"
#include "trials/trial_file.h"

#define LARGEST_RESULT (256 << 20)

/* ---- files ---- */

/* <folder>/<part>/<name>; parts are "trials", "results", "slices", "log" and "" */
static bool
path_of(const struct tn_store *store, const char *part, const char *name, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/%s%s%s", store->folder, part, part[0] != '\0' ? "/" : "", name) < PATH_MAX;
}

/* A file that is to be renamed to `path`. */
static FILE *
begin(const char *path, char temporary[PATH_MAX])
{
	char host[64] = "";
	(void)gethostname(host, sizeof(host) - 1);
	if (snprintf(temporary, PATH_MAX, "%s.%s.%ld.new", path, host, (long)getpid()) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return fopen(temporary, "we");
}

static tn_status
end(FILE *out, const char *temporary, const char *path)
{
	bool good = out != NULL && ferror(out) == 0;
	if (out != NULL && fclose(out) != 0)
		good = false;
	good = good && rename(temporary, path) == 0;
	if (good)
		return TN_OK;
	int why = errno;
	if (out != NULL)
		unlink(temporary);
	return tn__fail(TN_IO, "%s cannot be written: %s", path, strerror(why));
}

char *
tn__store_read(const struct tn_store *store, const char *part, const char *name)
{
	char path[PATH_MAX], *text = NULL;
	struct stat about;
	int file = path_of(store, part, name, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (file < 0)
		return NULL;
	if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= LARGEST_RESULT)
		text = calloc(1, (size_t)about.st_size + 1);
	if (text != NULL && read(file, text, (size_t)about.st_size) != about.st_size) {
		free(text);
		text = NULL;
	}
	close(file);
	return text;
}

/* ---- the folder ---- */

static tn_status
make_folder(const char *path)
{
	/* for the user alone: command lines may have secrets */
	TN_RETURN_IF(mkdir(path, 0700) != 0 && errno != EEXIST, TN_IO, "--results %s cannot be made: %s", path,
	             strerror(errno));
	return TN_OK;
}

static char *
command_text(char *const *arguments)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	for (int i = 0; out != NULL && arguments[i] != NULL; i++)
		tn__line_put("argument", arguments[i], out);
	if (out != NULL)
		fclose(out);
	return text;
}

static tn_status
put_file(const struct tn_store *store, const char *name, const char *text)
{
	char path[PATH_MAX], temporary[PATH_MAX];
	TN_RETURN_IF(!path_of(store, "", name, path), TN_IO, "the path of the results is too long");
	FILE *out = begin(path, temporary);
	if (out != NULL)
		fputs(text, out);
	return end(out, temporary, path);
}

/* The folder is this program's, or becomes it. */
static tn_status
claim(const struct tn_store *store, char *const *arguments)
{
	char *text = command_text(arguments), *there = tn__store_read(store, "", "program");
	tn_status status = TN_OK;
	if (text == NULL)
		status = tn__fail(TN_NO_MEMORY, "out of host memory");
	else if (there == NULL)
		status = put_file(store, "program", text);
	else if (strcmp(there, text) != 0) {
		status = tn__fail(TN_INVALID,
		                  "%s has results of another command line: name another folder with --results, or delete it",
		                  store->folder);
	}
	if (status == TN_OK)
		status = put_file(store, "fingerprint", store->fingerprint);
	free(there);
	free(text);
	return status;
}

tn_status
tn__store_name(const char *folder, char *const *arguments, struct tn_store *out)
{
	char here[PATH_MAX];
	bool absolute = folder[0] == '/';
	*out = (struct tn_store){ .slices = 0 };
	TN_RETURN_IF(folder[0] == '\0', TN_INVALID, "--results needs the name of a folder");
	TN_RETURN_IF(!absolute && getcwd(here, sizeof(here)) == NULL, TN_IO, "this folder has no name: %s",
	             strerror(errno));
	int length = snprintf(out->folder, sizeof(out->folder), "%s%s%s", absolute ? "" : here, absolute ? "" : "/",
	                      folder);
	TN_RETURN_IF(length + 200 > PATH_MAX, TN_INVALID, "--results: the path is too long");
	tn__fingerprint(arguments, out->fingerprint);
	return TN_OK;
}

tn_status
tn__store_open(const char *folder, char *const *arguments, struct tn_store *out)
{
	static const char *const parts[] = { "trials", "results", "slices", "log" };
	struct tn_store store;
	char path[PATH_MAX];
	TN_FORWARD_IF_ERROR(tn__store_name(folder, arguments, &store));
	TN_FORWARD_IF_ERROR(make_folder(store.folder));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && path_of(&store, "", parts[i], path); i++)
		TN_FORWARD_IF_ERROR(make_folder(path));
	TN_FORWARD_IF_ERROR(claim(&store, arguments));
	*out = store;
	return TN_OK;
}

/* ---- results ---- */

void
tn__store_key(const struct tn_store *store, const struct tn_trial *trial, char key[TN_SHA256_TEXT])
{
	char *text = NULL;
	size_t size = 0;
	struct tn_sha256 sha;
	FILE *out = open_memstream(&text, &size);
	if (out != NULL) {
		tn__trial_write(trial, 0, true, out);
		fclose(out);
	}
	tn__sha256_begin(&sha);
	tn__sha256_add_text(&sha, store->fingerprint);
	tn__sha256_add_text(&sha, text);
	tn__sha256_end(&sha, key);
	key[32] = '\0'; /* half of it is as unique, and fits a line */
	free(text);
}

bool
tn__store_has(const struct tn_store *store, const char *key)
{
	char path[PATH_MAX];
	return path_of(store, "results", key, path) && access(path, F_OK) == 0;
}

void
tn__store_forget(const struct tn_store *store, const char *key)
{
	char path[PATH_MAX];
	if (path_of(store, "results", key, path))
		unlink(path);
}

bool
tn__store_take(const struct tn_store *store, const char *key, struct tn_trial *trial)
{
	char *text = tn__store_read(store, "results", key), host[64];
	bool taken = text != NULL && tn__trial_result_parse(text, trial, host) == TN_OK;
	if (text != NULL && !taken)
		tn__trial_clear(trial);
	free(text);
	return taken;
}

bool
tn__store_find(const struct tn_store *store, struct tn_trial *trial)
{
	char key[TN_SHA256_TEXT];
	if (store->folder[0] == '\0')
		return false;
	tn__store_key(store, trial, key);
	if (!tn__store_take(store, key, trial))
		return false;
	if (trial->end == TN_TRIAL_DONE)
		return true;
	tn__trial_clear(trial);
	return false;
}

tn_status
tn__store_add_trial(const struct tn_store *store, const char *key, const struct tn_trial *trial, double limit_seconds)
{
	char path[PATH_MAX], temporary[PATH_MAX];
	TN_RETURN_IF(!path_of(store, "trials", key, path), TN_IO, "the path of the results is too long");
	FILE *out = begin(path, temporary);
	if (out != NULL)
		tn__trial_write(trial, limit_seconds, false, out);
	return end(out, temporary, path);
}

void
tn__store_name_slice(struct tn_store *store, char name[64])
{
	char host[32] = "";
	(void)gethostname(host, sizeof(host) - 1);
	for (char *at = host; *at != '\0'; at++) /* it will stand in scripts */
		if (!isalnum((unsigned char)*at))
			*at = '_';
	snprintf(name, 64, "%.24s-%ld-%d", host, (long)getpid(), ++store->slices);
}

tn_status
tn__store_add_slice(const struct tn_store *store, const char *name, const char *const *keys, int count)
{
	char path[PATH_MAX], temporary[PATH_MAX];
	TN_RETURN_IF(!path_of(store, "slices", name, path), TN_IO, "the path of the results is too long");
	FILE *out = begin(path, temporary);
	for (int i = 0; out != NULL && i < count; i++)
		fprintf(out, "%s\n", keys[i]);
	return end(out, temporary, path);
}

tn_status
tn__store_put(const struct tn_store *store, const struct tn_trial *trial, const char *outcome)
{
	char path[PATH_MAX], temporary[PATH_MAX], key[TN_SHA256_TEXT];
	if (store->folder[0] == '\0' || trial->end == TN_TRIAL_STOPPED)
		return TN_OK;
	tn__store_key(store, trial, key);
	TN_RETURN_IF(!path_of(store, "trials", key, path), TN_IO, "the path of the results is too long");
	if (access(path, F_OK) != 0)
		TN_FORWARD_IF_ERROR(tn__store_add_trial(store, key, trial, 0));
	TN_RETURN_IF(!path_of(store, "results", key, path), TN_IO, "the path of the results is too long");
	FILE *out = begin(path, temporary);
	if (out != NULL)
		tn__trial_result_write(trial, outcome, out);
	return end(out, temporary, path);
}

/* ---- as a table ---- */

static void
put_word(FILE *out, const char *word)
{
	bool quoted = strpbrk(word, ",\"\n\r") != NULL;
	if (quoted)
		fputc('"', out);
	for (; *word != '\0'; word++)
		fputs(*word == '"' ? "\"\"" : (char[2]){ *word, '\0' }, out);
	if (quoted)
		fputc('"', out);
}

static void
put_figure(FILE *out, int64_t bytes)
{
	fputc(',', out);
	if (bytes != TN_NO_FIGURE)
		fprintf(out, "%lld", (long long)bytes);
}

static void
put_row(FILE *out, const char *key, const struct tn_read_trial *asked, const struct tn_trial *answer, const char *host)
{
	static const char *const failed[] = {
		[TN_TRIAL_SLOW] = "too slow", [TN_TRIAL_HOST_MEMORY] = "host memory", [TN_TRIAL_FAILED] = "no run"
	};
	const struct tn_run_options *options = &asked->trial.options;
	const struct tn_report *report = tn__trial_report(answer);
	bool done = answer->end == TN_TRIAL_DONE;
	char *command = tn__program_quote(options->arguments);
	put_word(out, command != NULL ? command : "");
	free(command);
	fputc(',', out);
	put_word(out, asked->trial.changes != NULL ? asked->trial.changes : "");
	fputc(',', out);
	put_word(out, options->gpu);
	fprintf(out, ",%d", options->gpus);
	if (options->memory_bytes == TN_UNLIMITED_CARD)
		fputs(",unlimited", out);
	else
		put_figure(out, options->memory_bytes != 0 ? (int64_t)options->memory_bytes : TN_NO_FIGURE);
	put_figure(out, (int64_t)options->other_bytes);
	fprintf(out, ",%s", done ? tn__verdict_text(report->verdict) : failed[answer->end]);
	put_figure(out, done ? report->device_peak : TN_NO_FIGURE);
	put_figure(out, done ? report->allocated_peak : TN_NO_FIGURE);
	fprintf(out, ",%.1f,%s,%s\n", answer->seconds, host, key);
}

/* A row of the table, NULL where the result is none; the caller frees. */
static char *
row_of(const struct tn_store *store, const char *key)
{
	struct tn_read_trial asked = { 0 };
	struct tn_trial answer = { 0 };
	char *text = tn__store_read(store, "trials", key), *result = tn__store_read(store, "results", key), *row = NULL;
	char host[64];
	size_t size;
	bool read = text != NULL && tn__trial_parse(text, &asked) == TN_OK; /* the text is taken over */
	if (read && result != NULL && tn__trial_result_parse(result, &answer, host) == TN_OK) {
		FILE *out = open_memstream(&row, &size);
		if (out != NULL) {
			put_row(out, key, &asked, &answer, host);
			fclose(out);
		}
	}
	tn__read_trial_free(&asked);
	tn__trial_clear(&answer);
	free(result);
	return row;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

tn_status
tn__store_tabulate(const struct tn_store *store)
{
	char path[PATH_MAX], temporary[PATH_MAX], **rows = NULL;
	const struct dirent *item;
	size_t count = 0;
	if (store->folder[0] == '\0' || !path_of(store, "", "results", path))
		return TN_OK;
	DIR *listing = opendir(path);
	while (listing != NULL && (item = readdir(listing)) != NULL) {
		char *row = strlen(item->d_name) == 32 ? row_of(store, item->d_name) : NULL;
		if (row != NULL && tn__array_add(&rows, count, sizeof(*rows)))
			rows[count++] = row;
		else
			free(row);
	}
	if (listing != NULL)
		closedir(listing);
	if (count > 0)
		qsort(rows, count, sizeof(*rows), by_text);
	FILE *out = path_of(store, "", "results.csv", path) ? begin(path, temporary) : NULL;
	if (out != NULL)
		fputs("command,changes,gpu,gpus,memory_bytes,other_bytes,verdict,device_peak_bytes,allocated_peak_bytes,"
		      "seconds,host,key\n",
		      out);
	for (size_t i = 0; i < count; i++) {
		if (out != NULL)
			fputs(rows[i], out);
		free(rows[i]);
	}
	free(rows);
	return end(out, temporary, path);
}
