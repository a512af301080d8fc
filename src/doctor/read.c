/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounded reading of files below a root. What stands in them is not trusted: any bytes, any length, any type of file.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "doctor/checks.h"

#define PATH_ROOM 4096
#define FIRST_ROOM ((size_t)64 << 10)
#define RECORD_ROOM ((size_t)16 << 10) /* a record of /dev/kmsg is read whole or not at all */

char *
tn__rooted(const struct tn_machine *machine, const char *path)
{
	char *whole = NULL;
	return asprintf(&whole, "%s%s", machine->root, path) < 0 ? NULL : whole;
}

static int
open_rooted(const struct tn_machine *machine, const char *path)
{
	char *whole = tn__rooted(machine, path);
	int file = whole != NULL ? open(whole, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) : -1;
	free(whole);
	return file;
}

/* More room, up to TN_TEXT_MAX; frees the text where there is none. */
static char *
with_more_room(char *text, size_t *room)
{
	*room = *room == 0 ? FIRST_ROOM : 2 * *room < TN_TEXT_MAX ? 2 * *room : TN_TEXT_MAX;
	char *larger = realloc(text, *room + 1);
	if (larger == NULL)
		free(text);
	return larger;
}

/* Reads until the end, an error or TN_TEXT_MAX. /dev/kmsg gives one record a call and EPIPE where records were lost. */
static char *
read_whole(int file, size_t *length)
{
	size_t room = 0;
	char *text = NULL;
	for (*length = 0; *length < TN_TEXT_MAX;) {
		if (room - *length < RECORD_ROOM && room < TN_TEXT_MAX && (text = with_more_room(text, &room)) == NULL)
			return NULL;
		ssize_t got = read(file, text + *length, room - *length);
		if (got < 0 && (errno == EINTR || errno == EPIPE))
			continue;
		if (got <= 0)
			break;
		*length += (size_t)got;
	}
	return text;
}

static char *
read_path(const struct tn_machine *machine, const char *path)
{
	int file = open_rooted(machine, path);
	struct stat about;
	if (file < 0)
		return NULL;
	size_t length;
	char *text = fstat(file, &about) == 0 && !S_ISDIR(about.st_mode) ? read_whole(file, &length) : NULL;
	if (text != NULL) {
		for (size_t i = 0; i < length; i++)
			if (text[i] == '\0')
				text[i] = ' ';
		text[length] = '\0';
		char *shorter = realloc(text, length + 1);
		text = shorter != NULL ? shorter : text;
	}
	close(file);
	return text;
}

/* The path that a format makes; false where it is too long. */
static bool
path_of(char path[PATH_ROOM], const char *format, va_list arguments)
{
	int length = vsnprintf(path, PATH_ROOM, format, arguments);
	return length >= 0 && length < PATH_ROOM;
}

char *
tn__read_text(const struct tn_machine *machine, const char *format, ...)
{
	char path[PATH_ROOM];
	va_list arguments;
	va_start(arguments, format);
	bool good = path_of(path, format, arguments);
	va_end(arguments);
	return good ? read_path(machine, path) : NULL;
}

bool
tn__read_line(const struct tn_machine *machine, char *line, size_t capacity, const char *format, ...)
{
	char path[PATH_ROOM];
	va_list arguments;
	va_start(arguments, format);
	bool good = path_of(path, format, arguments);
	va_end(arguments);
	char *text = good ? read_path(machine, path) : NULL;
	if (text == NULL)
		return false;
	snprintf(line, capacity, "%.*s", (int)strcspn(text, "\n"), text);
	free(text);
	return true;
}

bool
tn__exists(const struct tn_machine *machine, const char *format, ...)
{
	char path[PATH_ROOM];
	va_list arguments;
	va_start(arguments, format);
	bool good = path_of(path, format, arguments);
	va_end(arguments);
	char *whole = good ? tn__rooted(machine, path) : NULL;
	struct stat about;
	bool exists = whole != NULL && lstat(whole, &about) == 0;
	free(whole);
	return exists;
}

void
tn__each_name(const struct tn_machine *machine, const char *folder, bool (*each)(void *context, const char *name),
              void *context)
{
	char *whole = tn__rooted(machine, folder);
	struct dirent **entries = NULL;
	int count = whole != NULL ? scandir(whole, &entries, NULL, alphasort) : -1;
	bool more = true;
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		if (more && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			more = each(context, name);
		free(entries[i]);
	}
	free(entries);
	free(whole);
}

const char *
tn__variable(const struct tn_machine *machine, const char *name)
{
	size_t length = strlen(name);
	for (char *const *at = machine->environment; at != NULL && *at != NULL; at++)
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			return *at + length + 1;
	return NULL;
}

const char *
tn__field(const char *text, const char *name)
{
	size_t length = strlen(name);
	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) != 0)
			continue;
		line += length;
		return line + strspn(line, " \t:");
	}
	return NULL;
}

bool
tn__number(const char *text, uint64_t *out)
{
	char *end;
	if (text == NULL)
		return false;
	text += strspn(text, " \t");
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno != 0 || value > INT64_MAX)
		return false;
	*out = value;
	return true;
}

int
tn__version_number(const char *text)
{
	unsigned major = 0, minor = 0;
	if (sscanf(text, "%4u.%3u", &major, &minor) < 1)
		return 0;
	return (int)(major * 1000 + minor);
}

const char *
tn__doctor_time(int64_t seconds, char buffer[32])
{
	struct tm parts;
	time_t when = (time_t)seconds;
	if (seconds <= 0 || localtime_r(&when, &parts) == NULL || strftime(buffer, 32, "%Y-%m-%d %H:%M", &parts) == 0)
		return "unknown";
	return buffer;
}
