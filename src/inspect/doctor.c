/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage doctor: looks at this machine and has what was found written.
 */
#include "tonnage/doctor.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "report/diagnosis.h"
#include "report/document.h"

/* A name without a slash is looked for on the PATH; false where it is not there. */
static bool
find_program(const char *name, char path[PATH_MAX])
{
	const char *at = getenv("PATH");
	if (strchr(name, '/') != NULL) {
		bool whole = name[0] == '/';
		char folder[PATH_MAX] = "";
		if (!whole && getcwd(folder, sizeof(folder)) == NULL)
			return false;
		return snprintf(path, PATH_MAX, "%s%s%s", folder, whole ? "" : "/", name) < PATH_MAX && access(path, F_OK) == 0;
	}
	for (size_t length; at != NULL && *at != '\0'; at += length + (at[length] == ':')) {
		length = strcspn(at, ":");
		if (length > 0 && snprintf(path, PATH_MAX, "%.*s/%s", (int)length, at, name) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static tn_status
choose_python(const char *named, char path[PATH_MAX], struct tn_machine *machine)
{
	machine->python_named = named != NULL;
	if (named != NULL ? find_program(named, path) : find_program("python3", path) || find_program("python", path))
		machine->python = path;
	TN_RETURN_IF(named != NULL && machine->python == NULL, TN_NOT_FOUND,
	             "no Python at \"%s\": name an interpreter, as \"which python\" prints it", named);
	return TN_OK;
}

tn_status
tn_doctor(const struct tn_doctor_options *options, bool *found)
{
	struct tn_diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));
	struct tn_nvml nvml;
	char python[PATH_MAX];
	struct tn_machine machine = { .root = "", .environment = environ, .now = time(NULL), .own_pid = getpid() };
	TN_RETURN_IF(diagnosis == NULL, TN_NO_MEMORY, "out of host memory");
	if (tn__nvml_open(&nvml))
		machine.nvml = &nvml;
	tn_status status = choose_python(options->python, python, &machine);
	if (status == TN_OK)
		status = tn__doctor_examine(&machine, diagnosis);
	const struct tn_shown_diagnosis shown = { diagnosis, machine.python };
	if (status == TN_OK)
		status = options->json ? tn__doctor_document.json(&shown, options->output)
		                       : tn__doctor_document.text(&shown, tn__style_of(options->output), options->output);
	if (status == TN_OK)
		*found = tn__diagnosis_count(diagnosis, TN_LEVEL_ERROR) + tn__diagnosis_count(diagnosis, TN_LEVEL_WARNING) > 0;
	tn__diagnosis_free(diagnosis);
	free(diagnosis);
	return status;
}
