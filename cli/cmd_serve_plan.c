/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage serve-plan: will an inference engine start?
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "options.h"
#include "tonnage/run.h" /* exit statuses */
#include "tonnage/serve.h"

#define DIFFERS 1
#define LONGEST 100000000

static const char help[] =
	"usage: tonnage serve-plan FOLDER [--gpu CARD] [--gpus N] [options]\n"
	"\n"
	"Says whether an inference engine starts with the checkpoint in FOLDER (config.json, and whole safetensors\n"
	"files, their headers or their index), how long and how many sequences its cache holds, and what to change\n"
	"when it does not start. Nothing is started or downloaded.\n"
	"\n"
	"  --gpu CARD                     the card (tonnage gpus lists them)\n"
	"  --gpus N                       tensor-parallel degree, 1 to 64 (default 1)\n"
	"  --engine NAME                  whose rules: vllm (default), sglang or lmdeploy\n"
	"  --max-model-len N              longest sequence (default: the model's own)\n"
	"  --concurrency N                so many such sequences at once (default 1)\n"
	"  --gpu-memory-utilization F     share of the card that the engine takes (default: the engine's)\n"
	"  --kv-cache-dtype TYPE          auto, bfloat16, float16, fp8, fp8_e4m3 or fp8_e5m2\n"
	"  --kv-cache-memory-bytes SIZE   take this for the cache, whatever is free\n"
	"  --max-num-seqs N               sequences in a batch (default: the engine's)\n"
	"  --max-num-batched-tokens N     tokens in a batch (default: the engine's)\n"
	"  --enforce-eager                without CUDA graphs\n"
	"  --enable-prefix-caching        for models with a state, where engines leave it off\n"
	"  --verify                       start the engine on a virtual card, too, and compare\n"
	"  --python PATH                  that has the engine (default: python3 on the PATH)\n"
	"  --json                         as JSON\n"
	"  --help                         this text\n"
	"\n"
	"Ends with 0 when it starts, 10 when it does not, 12 when that is not decided, 1 when --verify differs.\n";

enum {
	GPU = 1,
	GPUS,
	ENGINE,
	LENGTH,
	CONCURRENCY,
	UTILIZATION,
	CACHE_TYPE,
	CACHE_BYTES,
	SEQUENCES,
	TOKENS,
	EAGER,
	PREFIX,
	VERIFY,
	PYTHON,
	JSON,
	HELP
};

static const struct option long_options[] = {
	{ "gpu", required_argument, NULL, GPU },
	{ "gpus", required_argument, NULL, GPUS },
	{ "engine", required_argument, NULL, ENGINE },
	{ "max-model-len", required_argument, NULL, LENGTH },
	{ "concurrency", required_argument, NULL, CONCURRENCY },
	{ "gpu-memory-utilization", required_argument, NULL, UTILIZATION },
	{ "kv-cache-dtype", required_argument, NULL, CACHE_TYPE },
	{ "kv-cache-memory-bytes", required_argument, NULL, CACHE_BYTES },
	{ "max-num-seqs", required_argument, NULL, SEQUENCES },
	{ "max-num-batched-tokens", required_argument, NULL, TOKENS },
	{ "enforce-eager", no_argument, NULL, EAGER },
	{ "enable-prefix-caching", no_argument, NULL, PREFIX },
	{ "verify", no_argument, NULL, VERIFY },
	{ "python", required_argument, NULL, PYTHON },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static int
take_number(const char *option, int64_t *out)
{
	int value = 0, status = option_count(option, LONGEST, &value);
	*out = value;
	return status;
}

static int
take_share(double *out)
{
	char *end;
	*out = strtod(optarg, &end);
	if (end == optarg || *end != '\0' || !(*out > 0) || *out > 1)
		return wrong_usage("--gpu-memory-utilization is a share above 0 and at most 1, not \"%s\"", optarg);
	return 0;
}

static int
take_figure(int option, struct tn_serve_plan_options *options)
{
	switch (option) {
	case GPUS:
		return option_count("gpus", 64, &options->gpus);
	case LENGTH:
		return take_number("max-model-len", &options->max_model_len);
	case CONCURRENCY:
		return take_number("concurrency", &options->concurrency);
	case UTILIZATION:
		return take_share(&options->utilization);
	case CACHE_BYTES:
		return option_size("kv-cache-memory-bytes", false, &options->kv_cache_memory_bytes);
	case SEQUENCES:
		return take_number("max-num-seqs", &options->max_num_seqs);
	default:
		return take_number("max-num-batched-tokens", &options->max_num_batched_tokens);
	}
}

static int
take_option(int option, struct tn_serve_plan_options *options)
{
	options->enforce_eager |= option == EAGER;
	options->prefix_caching |= option == PREFIX;
	options->verify |= option == VERIFY;
	options->json |= option == JSON;
	if (option == GPU)
		options->gpu = optarg;
	else if (option == CACHE_TYPE)
		options->kv_cache_dtype = optarg;
	else if (option == PYTHON)
		options->python = optarg;
	else if (option == ENGINE)
		options->engine = optarg;
	else if (option != EAGER && option != PREFIX && option != VERIFY && option != JSON)
		return take_figure(option, options);
	return 0;
}

static int
exit_status(tn_status status, enum tn_serve_result result)
{
	static const int statuses[] = { TN_EXIT_FITS, TN_EXIT_OUT_OF_MEMORY, TN_EXIT_UNDECIDED, DIFFERS };
	if (status == TN_OK)
		return statuses[result];
	say_error("%s", tn_error_text());
	return status == TN_NO_MEMORY ? TN_EXIT_OWN_FAILURE : TN_EXIT_USAGE;
}

static int
cmd_serve_plan(int argc, char **argv)
{
	struct tn_serve_plan_options options = { .output = stdout };
	enum tn_serve_result result = TN_SERVE_RESULT_UNDECIDED;
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (option == HELP)
			return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
		if (option == ':')
			return wrong_usage("serve-plan: %s needs a value (tonnage serve-plan --help)", argv[optind - 1]);
		if (option == '?')
			return wrong_usage("serve-plan: unknown option %s (tonnage serve-plan --help)", argv[optind - 1]);
		int wrong = take_option(option, &options);
		if (wrong != 0)
			return wrong;
	}
	if (optind != argc - 1)
		return wrong_usage("serve-plan: name one folder with a config.json (tonnage serve-plan --help)");
	options.folder = argv[optind];
	tn_status status = tn_serve_plan(&options, &result);
	return exit_status(status, result);
}

const struct command serve_plan_command = {
	"serve-plan", "will an inference engine start: cards, lengths, what to change", cmd_serve_plan, long_options, help,
	A_FILE
};
