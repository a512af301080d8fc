/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job did on the measured card beside what it did on the virtual one.
 */
#include "verdict/validation.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define ALLOCATED_PEAK "allocated_bytes.all.peak"
#define RESERVED_PEAK "reserved_bytes.all.peak"

static json_t *
pair(const json_t *measured, const json_t *copy)
{
	return json_pack("{s:O?, s:O?}", "measured", measured, "copy", copy);
}

/* Whether two runs of the job on one card give the same; the job names what does not. */
static bool
repeats(const json_t *unrepeated, const char *counter)
{
	const json_t *family;
	size_t i;
	json_array_foreach(unrepeated, i, family) {
		const char *begin = json_string_value(family);
		if (begin != NULL && strncmp(counter, begin, strlen(begin)) == 0)
			return false;
	}
	return true;
}

static void
add_difference(json_t *differences, const char *counter, const json_t *measured, const json_t *copy,
               const json_t *unrepeated)
{
	json_array_append_new(differences, json_pack("{s:s, s:O?, s:O?, s:b}", "counter", counter, "measured", measured,
	                                             "copy", copy, "repeats", repeats(unrepeated, counter)));
}

/* Every counter of PyTorch that is not the same on both sides; a counter that one side lacks is null there. */
static json_t *
counter_differences(const json_t *measured, const json_t *copy, const json_t *unrepeated)
{
	json_t *differences = json_array();
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)measured, name, value) {
		const json_t *other = json_object_get(copy, name);
		if (!json_equal(value, other))
			add_difference(differences, name, value, other, unrepeated);
	}
	json_object_foreach((json_t *)copy, name, value)
		if (json_object_get(measured, name) == NULL)
			add_difference(differences, name, NULL, value, unrepeated);
	return differences;
}

/* Whether none of the differences is of a counter that repeats. */
static bool
counters_agree(const json_t *differences)
{
	const json_t *difference;
	size_t i;
	json_array_foreach(differences, i, difference)
		if (tn__json_read_truth(difference, "repeats"))
			return false;
	return true;
}

static json_t *
same_or_both(const json_t *measured, const json_t *copy)
{
	bool same = json_equal(measured, copy);
	return json_pack("{s:b, s:O?, s:O?}", "same", same, "measured", measured, "copy", same ? NULL : copy);
}

static bool
is_near(const json_t *measured, const json_t *copy)
{
	if (!json_is_integer(measured) || !json_is_integer(copy))
		return true; /* nothing is known that could differ */
	return llabs(json_integer_value(measured) - json_integer_value(copy)) <= TN_VALIDATE_PROCESS_BYTES;
}

static json_t *
reason(const char *why)
{
	json_t *text = why != NULL ? json_string(why) : NULL;
	return text != NULL ? text : json_null();
}

json_t *
tn__validate_compare(const char *job, const json_t *measured, const char *measured_why, const json_t *copy,
                     const char *copy_why)
{
	const json_t *stats = json_object_get(measured, "stats"), *copied = json_object_get(copy, "stats");
	const json_t *process = json_object_get(measured, "device_bytes");
	const json_t *copied_process = json_object_get(copy, "device_bytes");
	json_t *counters = counter_differences(stats, copied, json_object_get(measured, "unrepeated"));
	json_t *segments = same_or_both(json_object_get(measured, "segments"), json_object_get(copy, "segments"));
	json_t *rows = same_or_both(json_object_get(measured, "rows"), json_object_get(copy, "rows"));
	bool ends = json_equal(json_object_get(measured, "end"), json_object_get(copy, "end"));
	bool agrees = measured != NULL && copy != NULL && ends && counters_agree(counters) &&
	              tn__json_read_truth(segments, "same") && tn__json_read_truth(rows, "same") &&
	              is_near(process, copied_process);
	return json_pack(
		"{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "job", job, "agrees", agrees, "end",
		pair(json_object_get(measured, "end"), json_object_get(copy, "end")), "measured_failed", reason(measured_why),
		"copy_failed", reason(copy_why), "allocated_peak_bytes",
		pair(json_object_get(stats, ALLOCATED_PEAK), json_object_get(copied, ALLOCATED_PEAK)), "reserved_peak_bytes",
		pair(json_object_get(stats, RESERVED_PEAK), json_object_get(copied, RESERVED_PEAK)), "process_bytes",
		pair(process, copied_process), "counters", counters, "segments", segments, "rows", rows);
}

/* ---- over all jobs ---- */

static const json_t *
side(const json_t *entry, const char *what, const char *which)
{
	return json_object_get(json_object_get(entry, what), which);
}

static bool
within(const json_t *entry, const char *what, double share)
{
	const json_t *measured = side(entry, what, "measured"), *copy = side(entry, what, "copy");
	if (!json_is_integer(measured) || !json_is_integer(copy))
		return false;
	double bound = share * (double)json_integer_value(measured);
	return (double)llabs(json_integer_value(measured) - json_integer_value(copy)) <= bound;
}

json_t *
tn__validate_summary(const json_t *jobs)
{
	const json_t *entry;
	size_t i;
	int agree = 0, allocated = 0, reserved = 0, process = 0, segments = 0;
	json_array_foreach(jobs, i, entry) {
		bool ran = json_is_integer(side(entry, "allocated_peak_bytes", "measured"));
		agree += tn__json_read_truth(entry, "agrees");
		allocated += within(entry, "allocated_peak_bytes", 0);
		reserved += within(entry, "reserved_peak_bytes", 0.005);
		process += ran && is_near(side(entry, "process_bytes", "measured"), side(entry, "process_bytes", "copy"));
		segments += ran && json_is_true(side(entry, "segments", "same"));
	}
	return json_pack("{s:I, s:i, s:i, s:i, s:i, s:i}", "jobs", (json_int_t)json_array_size(jobs), "agree", agree,
	                 "allocated_peak_equal", allocated, "reserved_peak_within_half_percent", reserved,
	                 "process_within_100_mib", process, "same_segments", segments);
}
