/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that a run is asked to leave: the report as JSON and as a page, a baseline, the program's snapshot.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/secrets.h"
#include "report/document.h"
#include "supervise/internal.h"
#include "verdict/gate.h"
#include "verdict/redact.h"

tn_status
tn__check_writable(const char *path)
{
	struct stat about;
	if (strcmp(path, "-") == 0)
		return TN_OK;
	bool existed = stat(path, &about) == 0;
	if (existed && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) { /* opening a pipe would be noticed */
		TN_RETURN_IF(access(path, W_OK) != 0, TN_IO, "%s cannot be written: %s", path, strerror(errno));
		return TN_OK;
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	TN_RETURN_IF(fd < 0, TN_IO, "%s cannot be written: %s", path, strerror(errno));
	close(fd);
	if (!existed)
		unlink(path);
	return TN_OK;
}

static tn_status
copy_file(const char *from, const char *to)
{
	char buffer[1 << 16];
	FILE *in = fopen(from, "re"), *out = in != NULL ? fopen(to, "we") : NULL;
	bool good = out != NULL;
	size_t length;
	while (good && (length = fread(buffer, 1, sizeof(buffer), in)) > 0)
		good = fwrite(buffer, 1, length, out) == length;
	good = good && ferror(in) == 0;
	if (in != NULL)
		fclose(in);
	if (out != NULL && fclose(out) != 0)
		good = false;
	TN_RETURN_IF(!good, TN_IO, "%s could not be written: %s", to, strerror(errno));
	return TN_OK;
}

/* PyTorch's file holds names that the program gave (record_function). */
static tn_status
blot_secrets(const struct tn_secrets *secrets, const char *path)
{
	struct stat about;
	int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	bool good = file >= 0 && fstat(file, &about) == 0;
	if (good && S_ISREG(about.st_mode) && about.st_size > 0) {
		char *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		good = bytes != MAP_FAILED;
		if (good) {
			tn__blot_known(secrets, bytes, (size_t)about.st_size);
			munmap(bytes, (size_t)about.st_size);
		}
	}
	if (file >= 0)
		close(file);
	TN_RETURN_IF(!good, TN_IO, "%s cannot be read: %s", path, strerror(errno));
	return TN_OK;
}

tn_status
tn__save_snapshot(const struct tn_run_options *options, const struct tn_folder *folder, struct tn_report *report)
{
	const char *wanted = options->snapshot_path, *made = report->snapshot_made;
	if (wanted == NULL || made == NULL || !tn__folder_owns(folder, made))
		return TN_OK;
	TN_FORWARD_IF_ERROR(blot_secrets(report->secrets, made));
	TN_FORWARD_IF_ERROR(copy_file(made, wanted));
	report->snapshot = strdup(wanted);
	return TN_OK;
}

tn_status
tn__save_to(const char *path, FILE *output, tn_status (*write)(const void *what, FILE *out), const void *what)
{
	if (strcmp(path, "-") == 0)
		return write(what, output);
	FILE *out = fopen(path, "we");
	TN_RETURN_IF(out == NULL, TN_IO, "%s cannot be written: %s", path, strerror(errno));
	tn_status status = write(what, out);
	TN_RETURN_IF(fclose(out) != 0 && status == TN_OK, TN_IO, "%s could not be written: %s", path, strerror(errno));
	return status;
}

tn_status
tn__save_document(const struct tn_document *kind, const void *what, const struct tn_run_options *options, bool page)
{
	const char *json = options->json_path, *html = options->html_path;
	if (json != NULL)
		TN_FORWARD_IF_ERROR(tn__save_to(json, options->output, kind->json, what));
	if (html != NULL && page)
		TN_FORWARD_IF_ERROR(tn__save_to(html, options->output, kind->page, what));
	return TN_OK;
}

tn_status
tn__print_document(const struct tn_document *kind, const void *what, const struct tn_run_options *options)
{
	return options->quiet ? TN_OK : kind->text(what, tn__style_of(options->messages), options->messages);
}

static tn_status
write_baseline(const void *report, FILE *out)
{
	return tn__baseline_write(report, out);
}

static tn_status
save_baseline(const struct tn_run_options *options, struct tn_report *report)
{
	const char *path = options->write_baseline_path;
	bool seen = report->verdict == TN_VERDICT_FITS || report->verdict == TN_VERDICT_OVER_BUDGET ||
	            report->verdict == TN_VERDICT_OVER_BASELINE || report->verdict == TN_VERDICT_OVER_HOST_MEMORY;
	if (path == NULL || !seen)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__save_to(path, options->output, write_baseline, report));
	report->gate.written = strdup(path);
	return TN_OK;
}

tn_status
tn__save_report(const struct tn_run_options *options, struct tn_report *report)
{
	TN_FORWARD_IF_ERROR(save_baseline(options, report));
	tn__mask_paths(report);
	return tn__save_document(&tn__run_document, report, options, report->misuse == TN_MISUSE_NONE);
}
