/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger's file: made by the supervisor, mapped by every process of a run.
 */
#include "device/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static tn_status
map_file(int fd, const char *path, struct tn_ledger **out)
{
	void *mapping = mmap(NULL, sizeof(struct tn_ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TN_RETURN_IF(mapping == MAP_FAILED, TN_IO, "cannot map %s: %s", path, strerror(errno));
	*out = mapping;
	return TN_OK;
}

tn_status
tn__ledger_create(const char *path, const struct tn_gpu_figures *gpus, int count, uint64_t other_bytes,
                  struct tn_ledger **out)
{
	TN_RETURN_IF(count < 0 || count > TN_MAX_DEVICES, TN_INVALID, "%d devices asked for; 0 to %d are possible", count,
	             TN_MAX_DEVICES);
	for (int i = 0; i < count; i++)
		TN_RETURN_IF(other_bytes > gpus[i].total_bytes, TN_INVALID,
		             "other processes cannot hold %llu bytes of a card of %llu", (unsigned long long)other_bytes,
		             (unsigned long long)gpus[i].total_bytes);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	TN_RETURN_IF(fd < 0, TN_IO, "cannot create %s: %s", path, strerror(errno));
	struct tn_ledger *ledger = NULL;
	tn_status status = TN_OK;
	/* Reserve the blocks now: a full disk must show here, not as SIGBUS at a store. */
	int no_space = posix_fallocate(fd, 0, sizeof(*ledger));
	if (no_space)
		status = tn__fail(TN_IO, "cannot write %s: %s", path, strerror(no_space));
	if (status == TN_OK)
		status = map_file(fd, path, &ledger);
	close(fd);
	if (status == TN_OK)
		status = tn__ledger_init_lock(&ledger->lock);
	if (status != TN_OK) {
		unlink(path);
		return status;
	}
	ledger->version = TN_LEDGER_VERSION;
	ledger->size = sizeof(*ledger);
	ledger->device_count = (uint32_t)count;
	for (int i = 0; i < count; i++) {
		ledger->devices[i].gpu = gpus[i];
		ledger->devices[i].other_bytes = other_bytes;
		ledger->devices[i].used_bytes = other_bytes;
		ledger->devices[i].peak_used_bytes = other_bytes;
		ledger->devices[i].at_peak.other_bytes = other_bytes;
	}
	ledger->magic = TN_LEDGER_MAGIC;
	*out = ledger;
	return TN_OK;
}

tn_status
tn__ledger_open(const char *path, struct tn_ledger **out)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	TN_RETURN_IF(fd < 0, TN_IO, "cannot open %s: %s", path, strerror(errno));
	struct stat about;
	struct tn_ledger *ledger = NULL;
	tn_status status = TN_OK;
	if (fstat(fd, &about) != 0 || about.st_size != (off_t)sizeof(*ledger))
		status = tn__fail(TN_FORMAT, "%s is not a ledger of this version", path);
	if (status == TN_OK)
		status = map_file(fd, path, &ledger);
	close(fd);
	TN_FORWARD_IF_ERROR(status);
	if (ledger->magic != TN_LEDGER_MAGIC || ledger->version != TN_LEDGER_VERSION) {
		tn__ledger_close(ledger);
		return tn__fail(TN_FORMAT, "%s is not a ledger of this version", path);
	}
	*out = ledger;
	return TN_OK;
}

void
tn__ledger_close(struct tn_ledger *ledger)
{
	if (ledger)
		munmap(ledger, sizeof(*ledger));
}
