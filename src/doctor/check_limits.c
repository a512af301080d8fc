/* SPDX-License-Identifier: Apache-2.0
 *
 * The limits of processes, as /proc/self/limits has them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/figure.h"
#include "doctor/checks.h"

#define FEW_FILES 1024
#define FEW_PROCESSES 1024
#define MUCH_ADDRESS_SPACE (UINT64_C(1) << 40) /* what CUDA reserves at the start is far below; unlimited is the rule */

/* The soft limit of that name; false where it is unlimited or not there. */
static bool
limit_of(const char *text, const char *name, uint64_t *out)
{
	return tn__number(tn__field(text, name), out);
}

static void
check_files(struct tn_diagnosis *out, const char *text)
{
	uint64_t files = 0;
	if (!limit_of(text, "Max open files", &files) || files > FEW_FILES)
		return;
	/* torch.multiprocessing's strategy file_descriptor: "Too many open files", "received 0 items of ancdata"
	 * (https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies) */
	struct tn_fact *fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_HINT, "few_files", -1,
	                                "A program may have %llu files open", (unsigned long long)files);
	tn__fact_meaning(out, fact,
	                 "DataLoader workers hold a file for each tensor on its way: \"Too many open files\", \"received 0 "
	                 "items of ancdata\".");
	tn__fact_remedy(out, fact, "ulimit -n 65536 before the program starts.");
}

static void
check_locked(const struct tn_machine *machine, struct tn_diagnosis *out, const char *text)
{
	uint64_t bytes = 0;
	char limit[32];
	if (!tn__exists(machine, "/sys/class/infiniband") || !limit_of(text, "Max locked memory", &bytes))
		return;
	struct tn_fact *fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_WARNING, "memlock", -1,
	                                "Only %s of memory may be locked, and this machine has InfiniBand",
	                                tn__human_bytes((int64_t)bytes, limit));
	tn__fact_meaning(
		out, fact,
		"NCCL registers its buffers with the network card and fails (\"ibv_reg_mr failed\", \"Cannot allocate "
		"memory\").");
	tn__fact_remedy(out, fact,
	                out->container ? "Start the container with --ulimit memlock=-1."
	                               : "ulimit -l unlimited (limits.conf, or LimitMEMLOCK of the service).");
}

static void
check_address_space(struct tn_diagnosis *out, const char *text)
{
	uint64_t bytes = 0;
	char limit[32];
	if (!limit_of(text, "Max address space", &bytes) || bytes > MUCH_ADDRESS_SPACE)
		return;
	struct tn_fact *fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_ERROR, "address_space", -1,
	                                "The address space of a program is limited to %s",
	                                tn__human_bytes((int64_t)bytes, limit));
	tn__fact_meaning(out, fact, "CUDA reserves addresses for the memory of all cards and the host: it fails to start.");
	tn__fact_remedy(out, fact, "ulimit -v unlimited. To limit a job's memory, use a control group.");
}

static void
check_processes(struct tn_diagnosis *out, const char *text)
{
	uint64_t count = 0;
	if (!limit_of(text, "Max processes", &count) || count > FEW_PROCESSES)
		return;
	struct tn_fact *fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_WARNING, "few_processes", -1,
	                                "You may have %llu processes and threads", (unsigned long long)count);
	tn__fact_meaning(out, fact,
	                 "Every worker starts threads: \"Resource temporarily unavailable\", \"can't start new thread\".");
	tn__fact_remedy(out, fact, "ulimit -u 65536, or OMP_NUM_THREADS=1 and fewer workers.");
}

void
tn__check_limits(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	char *text = tn__read_text(machine, "/proc/self/limits");
	if (text == NULL)
		return;
	check_files(out, text);
	check_locked(machine, out, text);
	check_address_space(out, text);
	check_processes(out, text);
	free(text);
}
