/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts the guest hook in a Python that does not find it by PYTHONPATH: `env PYTHONPATH=. python`, python -I, -E or -S, a
 * launcher that empties the environment of its children (doc/design/0005-guest-hook.md).
 *
 * The first file that an initialised interpreter opens (its site's, else the script) is the moment: a pending call is queued,
 * which the interpreter makes before the next instruction of its main thread. Where the hook is found as usual, nothing is
 * queued. Processes that are no Python pay for one look at a word a call.
 * Invariant: nothing of Python's is called before Py_IsInitialized() says so, and at most once afterwards.
 */
#include "preload/write_overlay.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

_Atomic bool tn__python_waits;

static int (*is_initialized)(void);
static int (*add_pending_call)(int (*function)(void *), void *argument);
static int (*run_string)(const char *text);

/* Leaves no name behind in __main__, and raises nothing. -X tonnage=off keeps the hook out. */
static const char start_hook[] =
	"try: (lambda s, g: s._xoptions.get('tonnage') == 'off' or '_tonnage_guest' in s.modules or ("
	"s.path.insert(0, g), __import__('_tonnage_guest.boot'), "
	"s.path.__setitem__(slice(None), [p for p in s.path if p != g]), s.modules['_tonnage_guest.boot'].start()))"
	"(__import__('sys'), __import__('os').environ['TONNAGE_GUEST'])\n"
	"except Exception: pass\n";

static int
start(void *argument)
{
	(void)argument;
	(void)run_string(start_hook);
	return 0;
}

/* Is `folder` one of those in a list with colons? */
static bool
is_in_list(const char *list, const char *folder)
{
	size_t length = strlen(folder);

	for (; list && *list; list += *list == ':') {
		size_t part = strcspn(list, ":");
		if (part == length && !memcmp(list, folder, length))
			return true;
		list += part;
	}
	return false;
}

static bool
flag_is_set(const char *name)
{
	const int *flag = dlsym(RTLD_DEFAULT, name);
	return flag && *flag;
}

/* Will `site` not import our sitecustomize? */
static bool
usual_road_is_closed(const char *folder)
{
	return flag_is_set("Py_NoSiteFlag") || flag_is_set("Py_IgnoreEnvironmentFlag") || flag_is_set("Py_IsolatedFlag") ||
	       !is_in_list(getenv("PYTHONPATH"), folder);
}

void
tn__python_look(void)
{
	bool waits = true;
	const char *folder = getenv("TONNAGE_GUEST");

	if (!is_initialized() || !atomic_compare_exchange_strong(&tn__python_waits, &waits, false))
		return;
	if (folder && *folder && usual_road_is_closed(folder))
		(void)add_pending_call(start, NULL);
}

__attribute__((constructor)) static void
find_python(void)
{
	const char *folder = getenv("TONNAGE_GUEST");

	if (!folder || !*folder)
		return;
	*(void **)&is_initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
	*(void **)&add_pending_call = dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
	*(void **)&run_string = dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
	if (is_initialized && add_pending_call && run_string)
		atomic_store(&tn__python_waits, true);
}
