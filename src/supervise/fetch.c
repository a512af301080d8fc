/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage fetch: finds the person's Python, and becomes the program there that speaks with the hub by the hub's own client
 * (doc/design/0023-weights.md). The store that it fills is what tn__environment_make tells runs of.
 */
#include "tonnage/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "supervise/internal.h"

const char *
tn__fetched_store(char path[PATH_MAX])
{
	char cudnn[PATH_MAX];
	if (tn__helper_cache(cudnn) == NULL)
		return NULL;
	*strrchr(cudnn, '/') = '\0';
	return snprintf(path, PATH_MAX, "%s/hub", cudnn) < PATH_MAX ? path : NULL;
}

static tn_status
find_python(const char *named, char path[PATH_MAX])
{
	int unused;
	if (named != NULL)
		return tn__program_find(named, path, &unused);
	if (tn__program_find("python3", path, &unused) == TN_OK || tn__program_find("python", path, &unused) == TN_OK)
		return TN_OK;
	return tn__fail(TN_NOT_FOUND,
	                "there is no python3 on the PATH: name the Python that has huggingface_hub with --python");
}

tn_status
tn_fetch(const struct tn_fetch_options *options)
{
	struct tn_install install;
	char python[PATH_MAX], script[PATH_MAX], store[PATH_MAX];
	TN_FORWARD_IF_ERROR(find_python(options->python, python));
	TN_FORWARD_IF_ERROR(tn__install_find(&install));
	TN_RETURN_IF(snprintf(script, sizeof(script), "%s/kit/fetch_model.py", install.libraries) >= (int)sizeof(script) ||
	                 access(script, R_OK) != 0,
	             TN_STATE, "the installation is incomplete: kit/fetch_model.py was not found");
	TN_RETURN_IF(tn__fetched_store(store) == NULL, TN_IO,
	             "neither HOME nor XDG_CACHE_HOME names a folder to keep the files in");
	const char *words[] = { python,
		                    "-B",
		                    script,
		                    store,
		                    options->model,
		                    options->revision != NULL ? options->revision : "main",
		                    options->into != NULL ? options->into : "",
		                    options->json ? "json" : "text",
		                    NULL };
	execv(python, (char *const *)words); /* NOLINT: execv changes no word */
	return tn__fail(TN_IO, "%s cannot be started: %s", python, strerror(errno));
}
