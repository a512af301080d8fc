/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of the program under test (doc/design/0002-run-protocol.md).
 *
 * Experiment trackers are told to stay offline through the variables that they document for it, so that made-up
 * results reach no server. A tracker that the user has switched off altogether stays off.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "dnn/cache.h"
#include "supervise/internal.h"

extern char **environ;

#define LIMIT_SECONDS 120

struct builder {
	char **items; /* owned strings */
	size_t count;
	bool failed;
};

static const char *
value_of(const struct builder *builder, const char *name)
{
	size_t length = strlen(name);
	for (size_t i = 0; i < builder->count; i++)
		if (strncmp(builder->items[i], name, length) == 0 && builder->items[i][length] == '=')
			return builder->items[i] + length + 1;
	return NULL;
}

static void
set(struct builder *builder, const char *name, const char *value)
{
	size_t length = strlen(name), i = 0;
	char *item = NULL;
	if (asprintf(&item, "%s=%s", name, value) < 0) {
		builder->failed = true;
		return;
	}
	while (i < builder->count && !(strncmp(builder->items[i], name, length) == 0 && builder->items[i][length] == '='))
		i++;
	if (i < builder->count)
		free(builder->items[i]);
	else
		builder->count++;
	builder->items[i] = item;
}

static void
drop(struct builder *builder, const char *name)
{
	size_t length = strlen(name), kept = 0;
	for (size_t i = 0; i < builder->count; i++) {
		char *item = builder->items[i];
		if (strncmp(item, name, length) == 0 && item[length] == '=')
			free(item);
		else
			builder->items[kept++] = item;
	}
	for (size_t i = kept; i < builder->count; i++)
		builder->items[i] = NULL;
	builder->count = kept;
}

/* `value` first, then what was there, separated by a colon. */
static void
prepend(struct builder *builder, const char *name, const char *value)
{
	const char *old = value_of(builder, name);
	char *joined = NULL;
	if (old == NULL || old[0] == '\0') {
		set(builder, name, value);
	} else if (asprintf(&joined, "%s:%s", value, old) < 0) {
		builder->failed = true;
	} else {
		set(builder, name, joined);
		free(joined);
	}
}

static void
set_unless(struct builder *builder, const char *name, const char *value, const char *but)
{
	const char *old = value_of(builder, name);
	if (old == NULL || but == NULL || strcasecmp(old, but) != 0)
		set(builder, name, value);
}

static void
take_trackers_offline(struct builder *builder, const struct tn_folder *folder)
{
	char path[PATH_MAX], address[PATH_MAX + 16];
	const char *mode = value_of(builder, "WANDB_MODE");
	if (mode != NULL && strcasecmp(mode, "offline") == 0)
		set(builder, "TONNAGE_WANDB", "offline"); /* the user's own wish is nothing that we held back */
	set_unless(builder, "WANDB_MODE", "offline", "disabled");
	/* Its helper is a Go program, which writes past libc: only inside the run. */
	static const char *const wandb[] = { "WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_CONFIG_DIR" };
	for (size_t i = 0; i < sizeof(wandb) / sizeof(wandb[0]); i++)
		set(builder, wandb[i], tn__folder_path(folder, "scratch/tmp", path));
	set_unless(builder, "NEPTUNE_MODE", "offline", "debug");
	set_unless(builder, "SWANLAB_MODE", "offline", "disabled");
	set_unless(builder, "COMET_MODE", "offline", "disabled");
	set(builder, "COMET_START_ONLINE", "0");
	set(builder, "CLEARML_OFFLINE_MODE", "1");
	set(builder, "TRAINS_OFFLINE_MODE", "1");
	set(builder, "DVC_STUDIO_OFFLINE", "true");
	set(builder, "HF_HUB_DISABLE_TELEMETRY", "1");
	/* MLflow knows no offline mode: a server's address is replaced by a database of the run, local stores are left. (It
	 * takes folders no longer.) */
	static const char *const servers[] = { "MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI" };
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		const char *server = value_of(builder, servers[i]);
		if (server == NULL || (strncmp(server, "http", 4) != 0 && strncmp(server, "databricks", 10) != 0))
			continue;
		snprintf(address, sizeof(address), "sqlite:///%s", tn__folder_path(folder, "scratch/tmp/mlflow.db", path));
		set(builder, servers[i], address);
	}
}

/* Whether the kernel counts all private memory against a limit (Documentation/mm/overcommit-accounting). */
static bool
overcommit_is_refused(void)
{
	FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
	int mode = file != NULL ? fgetc(file) : EOF;
	if (file != NULL)
		fclose(file);
	return mode == '2';
}

double
tn__limit_seconds(const struct tn_run_options *options)
{
	const char *text = getenv("TONNAGE_SECONDS");
	double seconds = text != NULL ? strtod(text, NULL) : 0;
	if (options->seconds > 0)
		return options->seconds;
	return seconds > 0 ? seconds : LIMIT_SECONDS;
}

static void
set_run(struct builder *builder, const struct tn_run_options *options, const struct tn_install *install,
        const struct tn_folder *folder, bool real_gpu)
{
	char path[PATH_MAX], cache[PATH_MAX], preload[PATH_MAX + 32];
	if (!real_gpu && overcommit_is_refused()) {
		snprintf(preload, sizeof(preload), "%s/libtonnage-lean.so", install->libraries);
		prepend(builder, "LD_PRELOAD", preload);
	}
	snprintf(preload, sizeof(preload), "%s/libtonnage-preload.so", install->libraries);
	prepend(builder, "LD_PRELOAD", preload);
	/* The virtual GPU is opened late and has thread-local variables of the static kind, for which other libraries may have left
	 * no room (512 bytes are set aside unless told): with librosa and scikit-learn there, it could not be opened at all. */
	prepend(builder, "GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=4096");
	prepend(builder, "PYTHONPATH", install->guest);
	set(builder, "TONNAGE_GUEST", install->guest);
	set(builder, "TONNAGE_RUN", folder->path);
	set(builder, "TONNAGE_LIB", install->libraries);
	set(builder, "TONNAGE_GPU", real_gpu ? "real" : "virtual");
	if (tn__helper_cache(path) != NULL)
		set(builder, TN_DNN_CACHE_VARIABLE, path);
	/* Never the user's own: what is tuned here is tuned by times that no kernel took. */
	if (!real_gpu && tn__compile_cache(options, cache) != NULL) {
		snprintf(path, sizeof(path), "%.*s/inductor", PATH_MAX - 16, cache);
		set(builder, "TORCHINDUCTOR_CACHE_DIR", path);
		snprintf(path, sizeof(path), "%.*s/triton", PATH_MAX - 16, cache);
		set(builder, "TRITON_CACHE_DIR", path);
	}
	/* Triton links its launchers against the driver and looks for the file. */
	if (!real_gpu && snprintf(path, sizeof(path), "%s/vgpu", install->libraries) < (int)sizeof(path))
		set(builder, "TRITON_LIBCUDA_PATH", path);
	/* Programs that call nvidia-smi see the virtual cards (src/smi). */
	if (!real_gpu && snprintf(path, sizeof(path), "%s/bin", install->libraries) < (int)sizeof(path))
		prepend(builder, "PATH", path);
	/* It numbers this machine's own cards, of which a virtual run has none. A script may still set it. */
	if (!real_gpu)
		drop(builder, "CUDA_VISIBLE_DEVICES");
	/* Byte code that Python would cache is nothing that a person wants to find in the scratch folder. */
	set(builder, "PYTHONDONTWRITEBYTECODE", "1");
}

/* What was asked of the run: the hook, the preloaded library and the virtual GPU read it. */
static void
set_options(struct builder *builder, const struct tn_run_options *options, const struct tn_folder *folder,
            const struct tn_chosen_ranks *chosen, bool real_gpu)
{
	char path[PATH_MAX], cache[PATH_MAX];
	set(builder, "TONNAGE_STEPS", options->steps);
	set(builder, "TONNAGE_FOLLOWED", options->then_count > 0 ? "1" : "0");
	snprintf(path, sizeof(path), "%g", tn__limit_seconds(options));
	set(builder, "TONNAGE_SECONDS", path);
	set(builder, "TONNAGE_INIT", options->real_initialization ? "real" : "skip");
	static const char *const weights[] = {
		[TN_WEIGHTS_AUTO] = "auto", [TN_WEIGHTS_SHAPE] = "shape", [TN_WEIGHTS_REAL] = "real"
	};
	set(builder, "TONNAGE_WEIGHTS", real_gpu ? "real" : weights[options->weights]);
	set(builder, "TONNAGE_DATA", !real_gpu && options->data_shape ? "shape" : "real");
	if (!real_gpu && options->weights != TN_WEIGHTS_REAL && tn__fetched_store(cache) != NULL &&
	    access(cache, R_OK) == 0)
		set(builder, "TONNAGE_FETCHED", cache); /* files without weights: only where these are stood in for */
	else
		drop(builder, "TONNAGE_FETCHED");
	set(builder, "TONNAGE_REQUESTS", options->request_count > 0 ? "1" : "0");
	set(builder, "TONNAGE_INPUTS", options->inputs != NULL ? options->inputs : "as_is");
	set(builder, "TONNAGE_VALUES", options->all_values ? "all" : "small");
	snprintf(path, sizeof(path), "%.9g", options->assume);
	set(builder, "TONNAGE_ASSUME", path);
	if (chosen->count > 0) { /* doc/design/0031-absent-ranks.md */
		set(builder, "TONNAGE_RANKS", chosen->text);
		snprintf(path, sizeof(path), "%d", options->gpus);
		set(builder, "TONNAGE_GPUS", path);
		snprintf(path, sizeof(path), "%d", options->nodes);
		set(builder, "TONNAGE_NODES", path);
	}
	drop(builder, "TONNAGE_PROGRAM");     /* each of several gets its own (programs.c) */
	if (options->host_memory_bytes > 0) { /* doc/design/0036-hosts.md */
		snprintf(path, sizeof(path), "%llu", (unsigned long long)options->host_memory_bytes);
		set(builder, "TONNAGE_HOST_MEMORY", path);
	} else {
		drop(builder, "TONNAGE_HOST_MEMORY");
	}
	set(builder, "TONNAGE_WRITES", options->allow_writes ? "allow" : "scratch");
	set(builder, "TONNAGE_NETWORK", options->allow_network ? "allow" : "closed");
	set(builder, "TONNAGE_DETAIL", options->no_detail ? "0" : "1");
	set(builder, "TONNAGE_SNAPSHOT",
	    options->snapshot_path != NULL ? tn__folder_path(folder, "snapshot.pickle", path) : "");
	if (options->allow_writes)
		return;
	static const char *const temporary[] = { "TMPDIR", "TMP", "TEMP" };
	tn__folder_temporary(folder, path);
	for (size_t i = 0; i < sizeof(temporary) / sizeof(temporary[0]); i++)
		if (i == 0 || value_of(builder, temporary[i]) != NULL)
			set(builder, temporary[i], path);
}

char **
tn__environment_make(const struct tn_run_options *options, const struct tn_install *install,
                     const struct tn_folder *folder, const struct tn_chosen_ranks *chosen, bool real_gpu)
{
	struct builder builder = { 0 };
	size_t old = 0;
	while (environ[old] != NULL)
		old++;
	builder.items = calloc(old + 64, sizeof(*builder.items));
	if (builder.items == NULL)
		return NULL;
	for (size_t i = 0; i < old; i++) {
		builder.items[builder.count] = strdup(environ[i]);
		builder.failed |= builder.items[builder.count++] == NULL;
	}
	if (!builder.failed) {
		set_run(&builder, options, install, folder, real_gpu);
		set_options(&builder, options, folder, chosen, real_gpu);
		if (!options->allow_network)
			take_trackers_offline(&builder, folder);
	}
	if (!builder.failed)
		return builder.items;
	tn__environment_free(builder.items);
	return NULL;
}

void
tn__environment_free(char **environment)
{
	for (size_t i = 0; environment != NULL && environment[i] != NULL; i++)
		free(environment[i]);
	free(environment);
}
