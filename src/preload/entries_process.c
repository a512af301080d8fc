/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that start programs, and the working folder.
 *
 * A program that the run itself wrote is started from the upper under its logical name; a child whose environment was
 * emptied gets the variables back that put the overlay into it.
 * Invariant: what runs between vfork and exec uses the stack alone: no allocation, no lock, no dlsym.
 */
#include "preload/overlay.h"

#include <alloca.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- the environment of children ---- */

#define PRELOAD "LD_PRELOAD="

static const char *
find_variable(char *const *environment, const char *name, size_t length)
{
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length))
			return *environment;
	return NULL;
}

/* How many bytes and pointers complete_environment needs; 0 when nothing is missing. */
static size_t
missing_environment(char *const *environment, size_t *text)
{
	const char *preload = find_variable(environment, PRELOAD, strlen(PRELOAD));
	size_t count = 0;

	(void)tn__mode(); /* sets up */
	if (!tn__overlay_library.self[0])
		return 0;
	if (find_variable(environment, "TONNAGE_RUN=", 12) && preload && strstr(preload, tn__overlay_library.self))
		return 0;
	while (environment && environment[count])
		count++;
	*text = strlen(PRELOAD) + strlen(tn__overlay_library.self) + (preload ? strlen(preload) : 0) + 2;
	return count + (size_t)tn__overlay_library.environment_count + 2;
}

static char **
complete_environment(char *const *environment, char **completed, char *text)
{
	size_t count = 0;
	const char *preload = NULL;

	for (; environment && *environment; environment++) {
		if (!strncmp(*environment, PRELOAD, strlen(PRELOAD)))
			preload = *environment + strlen(PRELOAD);
		else
			completed[count++] = *environment;
	}
	for (int i = 0; i < tn__overlay_library.environment_count; i++) {
		const char *ours = tn__overlay_library.environment[i];
		if (!find_variable(completed, ours, (size_t)(strchr(ours, '=') - ours) + 1)) {
			completed[count++] = (char *)(uintptr_t)ours;
			completed[count] = NULL;
		}
	}
	strcpy(stpcpy(text, PRELOAD), tn__overlay_library.self);
	if (preload && *preload && strstr(preload, tn__overlay_library.self))
		strcpy(text + strlen(PRELOAD), preload);
	else if (preload && *preload)
		strcat(strcat(text, ":"), preload);
	completed[count++] = text;
	completed[count] = NULL;
	return completed;
}

/* Replaces `environment` by a completed one on the caller's stack. */
#define COMPLETE(environment)                                                                 \
	do {                                                                                      \
		size_t tn_text = 0, tn_count = missing_environment(environment, &tn_text);            \
		if (tn_count) {                                                                       \
			char **tn_completed = alloca((tn_count + 1) * sizeof(char *));                    \
			memset(tn_completed, 0, (tn_count + 1) * sizeof(char *));                         \
			(environment) = complete_environment(environment, tn_completed, alloca(tn_text)); \
		}                                                                                     \
	} while (0)

/* ---- exec ---- */

#define SCRIPT_LINE 256 /* as much as Linux reads of it */

/* The interpreter of a script in the upper: the kernel would give it the upper's name. Splits the first line in place;
 * false when it is no script. */
static bool
find_interpreter(const char *file, char *line, char **interpreter, char **argument)
{
	char *end;
	long fd = TN_CALL(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC, 0), length;

	if (fd < 0)
		return false;
	length = TN_CALL(SYS_read, fd, line, SCRIPT_LINE - 1);
	(void)TN_CALL(SYS_close, fd);
	if (length < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[length] = 0;
	line[strcspn(line, "\n")] = 0;
	*interpreter = line + 2 + strspn(line + 2, " \t");
	end = *interpreter + strcspn(*interpreter, " \t");
	*argument = end + strspn(end, " \t");
	*end = 0;
	for (end = *argument + strlen(*argument); end > *argument && (end[-1] == ' ' || end[-1] == '\t');)
		*--end = 0;
	return **interpreter != 0;
}

struct script {
	char line[SCRIPT_LINE];
	const char *name;
	char *interpreter, *argument;
};

/* Is the program a script that only the upper has? */
static bool
is_upper_script(const char *path, struct script *script)
{
	struct tn__target target;
	struct tn__place place;

	if (tn__quiet() || tn__mode() != TN__ACTIVE || !*path)
		return false;
	tn__resolve(AT_FDCWD, path, TN__FOLLOW, &place);
	if (place.error || place.lower)
		return false;
	tn__upper_name(&place, target.buffer);
	script->name = path;
	return TN_CALL(SYS_faccessat, AT_FDCWD, target.buffer, X_OK) == 0 &&
	       find_interpreter(target.buffer, script->line, &script->interpreter, &script->argument);
}

static size_t
count_arguments(char *const *arguments)
{
	size_t count = 0;

	while (arguments && arguments[count])
		count++;
	return count;
}

/* The interpreter's arguments; `all` has room for two more than `arguments`. */
static char **
script_arguments(struct script *script, char *const *arguments, char **all)
{
	size_t count = 0;

	all[count++] = script->interpreter;
	if (*script->argument)
		all[count++] = script->argument;
	all[count++] = (char *)(uintptr_t)script->name;
	for (size_t i = 1; i < count_arguments(arguments); i++)
		all[count++] = arguments[i];
	all[count] = NULL;
	return all;
}

static TN_SLOW int
execute_file(const char *path, char *const *arguments, char *const *environment)
{
	struct tn__target target;

	tn__map_read(AT_FDCWD, path, TN__FOLLOW, &target);
	if (tn__mode() == TN__ACTIVE)
		tn__note_program(tn__overlay_library.run, target.path);
	return (int)TN_CALL(SYS_execve, target.path, arguments, environment);
}

static TN_SLOW int
execute(const char *path, char *const *arguments, char *const *environment)
{
	struct script script;

	COMPLETE(environment);
	if (!is_upper_script(path, &script))
		return execute_file(path, arguments, environment);
	char **all = alloca((count_arguments(arguments) + 4) * sizeof(char *));
	return execute_file(script.interpreter, script_arguments(&script, arguments, all), environment);
}

TN_ENTRY int
execve(const char *path, char *const arguments[], char *const environment[])
{
	return tn__result(execute(path, arguments, environment));
}

TN_ENTRY int
execv(const char *path, char *const arguments[])
{
	return tn__result(execute(path, arguments, environ));
}

TN_ENTRY int
execveat(int dirfd, const char *path, char *const arguments[], char *const environment[], int flags)
{
	struct tn__target target;
	char *const *all = environment;

	COMPLETE(all);
	tn__map_read(dirfd, path, flags & AT_SYMLINK_NOFOLLOW ? 0 : TN__FOLLOW, &target);
	if (tn__mode() == TN__ACTIVE && target.path && target.path[0] == '/')
		tn__note_program(tn__overlay_library.run, target.path);
	return tn__result(TN_CALL(SYS_execveat, target.dirfd, target.path, arguments, all, flags));
}

TN_ENTRY int
fexecve(int fd, char *const arguments[], char *const environment[])
{
	char *const *all = environment;

	COMPLETE(all);
	return tn__result(TN_CALL(SYS_execveat, fd, "", arguments, all, AT_EMPTY_PATH));
}

/* What has no format that the kernel knows is a shell script, to the execvp family. */
static int
execute_or_shell(const char *path, char *const *arguments, char *const *environment)
{
	int result = execute(path, arguments, environment);

	if (result != -ENOEXEC)
		return result;
	size_t count = count_arguments(arguments);
	char **all = alloca((count + 3) * sizeof(char *));
	all[0] = (char *)(uintptr_t)"/bin/sh";
	all[1] = (char *)(uintptr_t)path;
	for (size_t i = 1; i <= count; i++)
		all[i + 1] = arguments[i];
	all[count ? count + 1 : 2] = NULL;
	return execute(all[0], all, environment);
}

/* The next name of a search along PATH; NULL at its end. */
static const char *
next_candidate(const char **search, const char *file, char *buffer)
{
	size_t length, name = strlen(file);
	const char *folder = *search;

	while (folder) {
		const char *end = strchrnul(folder, ':');
		length = (size_t)(end - folder);
		*search = *end ? end + 1 : NULL;
		if (length + name + 2 <= PATH_MAX) {
			memcpy(buffer, folder, length);
			if (length)
				buffer[length++] = '/';
			memcpy(buffer + length, file, name + 1);
			return buffer;
		}
		folder = *search;
	}
	return NULL;
}

static const char *
search_path(void)
{
	const char *path = getenv("PATH");
	return path ? path : "/bin:/usr/bin";
}

static bool
is_missing(int result)
{
	return result == -ENOENT || result == -ENOTDIR || result == -EACCES || result == -ESTALE || result == -ENODEV ||
	       result == -ETIMEDOUT;
}

static int
execute_searched(const char *file, char *const *arguments, char *const *environment)
{
	const char *search = search_path(), *candidate;
	char buffer[PATH_MAX];
	bool denied = false;
	int result = -ENOENT;

	if (!*file)
		return -ENOENT;
	if (strchr(file, '/'))
		return execute_or_shell(file, arguments, environment);
	while ((candidate = next_candidate(&search, file, buffer))) {
		result = execute_or_shell(candidate, arguments, environment);
		if (!is_missing(result))
			return result;
		denied |= result == -EACCES;
	}
	return denied ? -EACCES : result;
}

TN_ENTRY int
execvpe(const char *file, char *const arguments[], char *const environment[])
{
	return tn__result(execute_searched(file, arguments, environment));
}

TN_ENTRY int
execvp(const char *file, char *const arguments[])
{
	return tn__result(execute_searched(file, arguments, environ));
}

/* ---- exec with its arguments one by one ---- */

/* Puts the arguments into an array on the caller's stack; `after` is run while the list still can be read. */
#define GATHER(all, first, after)                         \
	size_t tn_count = 1;                                  \
	va_list tn_list;                                      \
	va_start(tn_list, first);                             \
	while (va_arg(tn_list, char *))                       \
		tn_count++;                                       \
	va_end(tn_list);                                      \
	char **all = alloca((tn_count + 1) * sizeof(char *)); \
	all[0] = (char *)(uintptr_t)(first);                  \
	va_start(tn_list, first);                             \
	for (size_t i = 1; i <= tn_count; i++)                \
		all[i] = va_arg(tn_list, char *);                 \
	after;                                                \
	va_end(tn_list)

TN_ENTRY int
execl(const char *path, const char *first, ...)
{
	GATHER(all, first, (void)0);
	return tn__result(execute(path, all, environ));
}

TN_ENTRY int
execlp(const char *file, const char *first, ...)
{
	GATHER(all, first, (void)0);
	return tn__result(execute_searched(file, all, environ));
}

TN_ENTRY int
execle(const char *path, const char *first, ...)
{
	char *const *environment;
	GATHER(all, first, environment = va_arg(tn_list, char *const *));
	return tn__result(execute(path, all, environment));
}

/* ---- posix_spawn ---- */

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const[], char *const[]);

static TN_SLOW int
spawn(spawn_function *function, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
      const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment)
{
	struct tn__target target;
	struct script script;

	COMPLETE(environment);
	if (is_upper_script(path, &script)) {
		char **all = alloca((count_arguments(arguments) + 4) * sizeof(char *));
		arguments = script_arguments(&script, arguments, all);
		path = script.interpreter;
	}
	tn__map_read(AT_FDCWD, path, TN__FOLLOW, &target);
	if (tn__mode() == TN__ACTIVE)
		tn__note_program(tn__overlay_library.run, target.path);
	return function(pid, target.path, actions, attributes, arguments, environment);
}

TN_ENTRY int
posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
            const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
            char *const environment[restrict])
{
	return spawn(TN_NEXT(posix_spawn), pid, path, actions, attributes, arguments, environment);
}

/* libc's search sees lower files only: found here where the run may have written the program. */
TN_ENTRY int
posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
             const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
	const char *search = search_path(), *candidate;
	char buffer[PATH_MAX];

	if (!tn__quiet() && *file && !strchr(file, '/'))
		while ((candidate = next_candidate(&search, file, buffer)))
			if (access(candidate, X_OK) == 0)
				return spawn(TN_NEXT(posix_spawnp), pid, candidate, actions, attributes, arguments, environment);
	return spawn(TN_NEXT(posix_spawnp), pid, file, actions, attributes, arguments, environment);
}

/* The child opens the file inside libc; what has to be made for it is made now. */
TN_ENTRY int
posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *restrict actions, int fd, const char *restrict path,
                                 int flags, mode_t mode)
{
	struct tn__target target;
	int result;

	if ((flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC))) {
		tn__map_read(AT_FDCWD, path, TN__FOLLOW, &target);
	} else {
		result = tn__map_open(AT_FDCWD, path, flags, &target);
		if (result)
			return -result;
	}
	return TN_NEXT(posix_spawn_file_actions_addopen)(actions, fd, target.path, flags, mode);
}

TN_ENTRY int
posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *restrict actions, const char *restrict path)
{
	struct tn__target target;

	tn__map_read(AT_FDCWD, path, TN__FOLLOW, &target);
	return TN_NEXT(posix_spawn_file_actions_addchdir_np)(actions, target.path);
}

/* ---- the working folder ---- */

static TN_SLOW int
slow_chdir(const char *path)
{
	struct tn__target target;

	tn__map_read(AT_FDCWD, path, TN__FOLLOW, &target);
	return tn__result(TN_CALL(SYS_chdir, target.path));
}

TN_ENTRY int
chdir(const char *path)
{
	return tn__quiet() ? TN_NEXT(chdir)(path) : slow_chdir(path);
}

/* The logical working folder; a negative error where the kernel has none, or it is an ordinary one. */
static int
find_folder(char *name)
{
	long length;

	if (tn__quiet() || tn__mode() != TN__ACTIVE)
		return -ENOENT;
	length = TN_CALL(SYS_getcwd, name, PATH_MAX);
	if (length < 0)
		return (int)length;
	return tn__strip_upper(name) ? 0 : -ENOENT;
}

TN_ENTRY char *
getcwd(char *buffer, size_t size)
{
	char name[PATH_MAX];
	size_t length;

	if (find_folder(name))
		return TN_NEXT(getcwd)(buffer, size);
	length = strlen(name) + 1;
	if (size ? length > size : buffer != NULL) {
		errno = size ? ERANGE : EINVAL;
		return NULL;
	}
	if (!buffer)
		buffer = malloc(size ? size : length);
	return buffer ? memcpy(buffer, name, length) : NULL;
}

char *__getcwd_chk(char *buffer, size_t size, size_t room);
TN_ENTRY char *
__getcwd_chk(char *buffer, size_t size, size_t room)
{
	return tn__quiet() || size > room ? TN_NEXT(__getcwd_chk)(buffer, size, room) : getcwd(buffer, size);
}

TN_ENTRY char *
get_current_dir_name(void)
{
	char name[PATH_MAX];
	return find_folder(name) ? TN_NEXT(get_current_dir_name)() : strdup(name);
}
