/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run tells early, and learns late.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/seconds.h"
#include "supervise/internal.h"

struct tn_late_news *
tn__late_news_make(void)
{
	void *page = mmap(NULL, sizeof(struct tn_late_news), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return page != MAP_FAILED ? page : NULL;
}

void
tn__late_news_free(struct tn_late_news *news)
{
	if (news != NULL)
		munmap(news, sizeof(*news));
}

void
tn__once_tell_early(struct tn_once *once)
{
	pid_t self = getpid();
	if (fork() != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != self)
		_exit(TN_EXIT_OWN_FAILURE);
	once->watch.ending.stop_reason = TN_REASON_SETTLED;
	once->watch.seconds = tn__now() - once->watch.started;
	once->way.early(once->way.context, once);
	_exit(0);
}
