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
tn__late_news_take_step(struct tn_late_news *news, const struct tn_ledger_guest *guest)
{
	if (news->known || news->step_known || guest->settled_after == 0)
		return;
	news->step = (int64_t)guest->settled_after;
	news->step_known = true;
}

void
tn__late_news_pass_on(const struct tn_late_news *news, struct tn_ledger_guest *guest)
{
	bool all = news->known;
	if (guest->news == TN_NEWS_ALL || (!all && !news->step_known))
		return;
	guest->news_step = (uint64_t)news->step;
	if (all)
		guest->news_epoch = (uint64_t)news->epoch;
	guest->news = all ? TN_NEWS_ALL : TN_NEWS_STEP;
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
