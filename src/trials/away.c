/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials that an engine makes: written into the folder of results, handed out in slices, collected as their results are there, and
 * made again where their worker was lost.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/seconds.h"
#include "supervise/internal.h"
#include "trials/trial_engine.h"

#define TICK_MILLISECONDS 250
#define MOST_AWAY 8192
#define MOST_LOST 3 /* workers, over one trial */

/* A trial that is out, or waits to be. */
struct order {
	struct tn_trial *trial;
	struct tn_slice *slice; /* NULL: it waits */
	char key[TN_SHA256_TEXT];
};

struct away {
	struct tn_trials *trials;
	struct tn_engine *engine;
	struct tn_store *store;
	struct order *orders;
	size_t order_count;
	struct tn_slice **slices; /* that are out */
	size_t slice_count;
};

/* ---- the first trial ---- */

struct first {
	struct tn_trials *trials;
	bool given;
};

static struct tn_trial *
next_first(void *context)
{
	struct first *first = context;
	if (first->given)
		return NULL;
	struct tn_trial *trial = first->trials->next(first->trials->context);
	first->given = trial != NULL;
	return trial;
}

static void
ended_first(void *context, struct tn_trial *trial)
{
	struct first *first = context;
	first->given = true; /* also where its result was there */
	first->trials->ended(first->trials->context, trial);
}

static void
tick_first(void *context)
{
	struct first *first = context;
	if (first->trials->tick != NULL)
		first->trials->tick(first->trials->context);
}

/* A program that fails does so here, before anything is handed out. */
static tn_status
run_first(struct tn_trials *trials, tn_status (*run_here)(struct tn_trials *trials))
{
	struct first first = { .trials = trials };
	struct tn_trials here = *trials;
	here.context = &first;
	here.next = next_first;
	here.ended = ended_first;
	here.tick = tick_first;
	here.forks = false;
	tn_status status = run_here(&here);
	trials->interrupted_by = here.interrupted_by;
	trials->count = here.count;
	trials->ended_count = here.ended_count;
	trials->reused = here.reused;
	trials->took = here.took;
	return status;
}

/* ---- orders ---- */

static void
tell(struct away *away, struct tn_trial *trial)
{
	away->trials->ended_count++;
	away->trials->ended(away->trials->context, trial);
}

/* Takes trials from the search until it has none to give. */
static tn_status
take_orders(struct away *away)
{
	struct tn_trials *trials = away->trials;
	struct tn_trial *trial;
	while (trials->interrupted_by == 0 && away->order_count < MOST_AWAY &&
	       (trial = trials->next(trials->context)) != NULL) {
		if (tn__store_find(away->store, trial)) {
			trials->reused++;
			tell(away, trial);
			continue;
		}
		TN_RETURN_IF(!tn__array_add(&away->orders, away->order_count, sizeof(*away->orders)), TN_NO_MEMORY,
		             "out of host memory");
		struct order *order = &away->orders[away->order_count++];
		*order = (struct order){ .trial = trial };
		trial->end = TN_TRIAL_RUNS;
		trial->pid = 0;
		trial->started = tn__now();
		trials->count++;
		trials->away++;
		if (away->engine->dry_run)
			continue;
		tn__store_key(away->store, trial, order->key);
		tn__store_forget(away->store, order->key); /* one that is not used again */
		TN_FORWARD_IF_ERROR(tn__store_add_trial(away->store, order->key, trial, trials->limit_seconds));
	}
	return TN_OK;
}

static void
drop_order(struct away *away, size_t index)
{
	struct order *order = &away->orders[index];
	if (order->slice != NULL)
		order->slice->count--;
	*order = away->orders[--away->order_count];
	away->trials->away--;
}

/* ---- handing out ---- */

static int
waiting(const struct away *away)
{
	int count = 0;
	for (size_t i = 0; i < away->order_count; i++)
		count += away->orders[i].slice == NULL;
	return count;
}

/* Slices of about the same size: twice as many as there are slots, so that the last ones do not wait for one; in a queue as many. */
static int
slices_of(const struct away *away, int count)
{
	int wanted = away->engine->slots * (away->engine->kind->waits ? 1 : 2);
	int least = (count + TN_SLICE_MOST - 1) / TN_SLICE_MOST;
	return wanted < least ? least : wanted > count ? count : wanted;
}

/* The next orders that wait become a slice, which is written. */
static tn_status
make_slice(struct away *away, int size, struct tn_slice **out)
{
	const char *keys[TN_SLICE_MOST];
	struct tn_slice *slice = calloc(1, sizeof(*slice));
	if (slice == NULL || !tn__array_add(&away->slices, away->slice_count, sizeof(*away->slices))) {
		free(slice);
		return tn__fail(TN_NO_MEMORY, "out of host memory");
	}
	away->slices[away->slice_count++] = slice;
	for (size_t i = 0; i < away->order_count && slice->count < size; i++)
		if (away->orders[i].slice == NULL) {
			away->orders[i].slice = slice;
			keys[slice->count++] = away->orders[i].key;
		}
	*out = slice;
	tn__store_name_slice(away->store, slice->name);
	return away->engine->dry_run ? TN_OK : tn__store_add_slice(away->store, slice->name, keys, slice->count);
}

static tn_status
hand_out(struct away *away)
{
	int count = waiting(away), left = slices_of(away, count);
	size_t before = away->slice_count;
	struct tn_slice *made = NULL;
	if (count == 0 || (away->engine->kind->waits && before > 0))
		return TN_OK;
	for (; count > 0; count -= made->count, left--)
		TN_FORWARD_IF_ERROR(make_slice(away, (count + left - 1) / left, &made));
	return away->engine->kind->submit(away->engine, away->slices + before, (int)(away->slice_count - before));
}

/* ---- collecting ---- */

/* A worker has died over it, or had too little of its computer's memory: it is made again, a few times. */
static void
lose(struct away *away, size_t index)
{
	struct order *order = &away->orders[index];
	struct tn_trial *trial = order->trial;
	if (order->slice != NULL)
		order->slice->count--;
	order->slice = NULL;
	if (++trial->lost < MOST_LOST) {
		away->trials->lost++;
		return;
	}
	away->trials->away--;
	*order = away->orders[--away->order_count];
	if (trial->outcome.report == NULL && trial->outcome.error == NULL) {
		away->trials->given_up++;
		trial->end = TN_TRIAL_FAILED;
		trial->outcome.exit_status = TN_EXIT_OWN_FAILURE;
		if (asprintf(&trial->outcome.error, "%d workers died over a trial: %s/log says more", MOST_LOST,
		             away->store->folder) < 0)
			trial->outcome.error = NULL;
	}
	tell(away, trial);
}

/* Takes results that are there. `index` moves on only where the order stays. */
static void
collect(struct away *away)
{
	for (size_t i = 0; i < away->order_count;) {
		struct order *order = &away->orders[i];
		struct tn_trial *trial = order->trial;
		if (trial->end == TN_TRIAL_STOPPED) {
			drop_order(away, i); /* the search needs it no more; where it is made all the same, its result stays */
		} else if (order->slice == NULL || !tn__store_has(away->store, order->key) ||
		           !tn__store_take(away->store, order->key, trial)) {
			i++;
		} else if (trial->end == TN_TRIAL_HOST_MEMORY && trial->lost + 1 < MOST_LOST) {
			tn__store_forget(away->store, order->key);
			tn__trial_clear(trial);
			trial->end = TN_TRIAL_RUNS;
			lose(away, i);
			i++;
		} else {
			drop_order(away, i);
			tell(away, trial);
		}
	}
}

/* Trials of slices that are over have lost their worker, once their results had time to be seen. */
static void
collect_lost(struct away *away)
{
	for (size_t i = away->order_count; i-- > 0;) {
		const struct tn_slice *slice = away->orders[i].slice;
		if (slice != NULL && slice->over && slice->since > 0 && tn__now() - slice->since > away->engine->kind->settle)
			lose(away, i);
	}
	for (size_t i = 0; i < away->slice_count;) {
		struct tn_slice *slice = away->slices[i];
		if (slice->over && slice->since == 0)
			slice->since = tn__now();
		if (slice->count > 0 || !slice->over) {
			i++;
			continue;
		}
		free(slice);
		away->slices[i] = away->slices[--away->slice_count];
	}
}

static tn_status
work(struct away *away)
{
	struct tn_trials *trials = away->trials;
	while (trials->interrupted_by == 0) {
		TN_FORWARD_IF_ERROR(take_orders(away));
		if (away->order_count == 0)
			break;
		TN_FORWARD_IF_ERROR(hand_out(away));
		if (away->engine->dry_run)
			break;
		struct pollfd watched = { trials->signals, POLLIN, 0 };
		(void)poll(&watched, 1, TICK_MILLISECONDS);
		tn__trials_take_signals(trials);
		TN_FORWARD_IF_ERROR(away->engine->kind->poll(away->engine, away->slices, (int)away->slice_count));
		collect(away);
		collect_lost(away);
		if (trials->tick != NULL)
			trials->tick(trials->context);
	}
	return TN_OK;
}

static void
close_away(struct away *away)
{
	away->engine->kind->close(away->engine, away->slices, (int)away->slice_count);
	if (!away->engine->dry_run)
		collect(away); /* what was ready in time counts */
	for (size_t i = 0; i < away->order_count; i++)
		away->orders[i].trial->end = TN_TRIAL_STOPPED;
	for (size_t i = 0; i < away->slice_count; i++)
		free(away->slices[i]);
	free(away->slices);
	free(away->orders);
	away->trials->away = 0;
}

tn_status
tn__trials_run_away(struct tn_trials *trials, tn_status (*run_here)(struct tn_trials *trials))
{
	struct away away = { .trials = trials, .engine = trials->engine, .store = trials->store };
	if (!trials->engine->dry_run)
		TN_FORWARD_IF_ERROR(run_first(trials, run_here));
	if (trials->interrupted_by != 0)
		return TN_OK;
	trials->engine->mask = trials->old_mask;
	tn_status status = trials->engine->kind->open(trials->engine);
	if (status != TN_OK)
		return status;
	status = work(&away);
	close_away(&away);
	return status;
}
