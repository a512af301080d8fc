/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows and WSL, as JSON and for a person.
 */
#include "report/json_parts.h"
#include "report/text.h"
#include "verdict/system.h"

json_t *
tn__system_json(const struct tn_report *report)
{
	const struct tn_host_system *system = &report->system;
	if (system->kind == TN_SYSTEM_LINUX)
		return json_null();
	json_t *range = system->display > 0
	                    ? json_pack("[I, I]", (json_int_t)system->display_lowest, (json_int_t)system->display_highest)
	                    : json_null();
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "name", tn__system_text(system->kind),
	                 "sysmem_fallback", system->forbidden ? "forbid" : "allow", "display_bytes",
	                 tn__json_figure(system->display > 0 ? system->display : TN_NO_FIGURE), "display_range_bytes",
	                 range, "fallback_limit_bytes", tn__json_figure(system->limit), "spilled_bytes",
	                 tn__json_figure(system->spilled), "pinned_bytes", tn__json_figure(system->pinned),
	                 "pinned_limit_bytes", tn__json_figure(system->pinned_limit));
}

void
tn__say_spilled(const struct tn_printer *printer, const struct tn_report *report, const char *card)
{
	char peak[32], spilled[32];
	tn__say(printer, TN_TINT_BAD, 0,
	        "Does not fit on %s: %s of %s would lie in the computer's memory, many times slower", card,
	        tn__human_bytes(report->system.spilled, spilled), tn__human_bytes(report->device_peak, peak));
}

void
tn__say_system(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_host_system *system = &report->system;
	char display[32], lowest[32], highest[32], limit[32];
	if (system->kind == TN_SYSTEM_LINUX)
		return;
	if (system->display > 0)
		tn__say(printer, TN_TINT_NONE, 2,
		        "%s: its desktop is taken to hold %s of the card (%s to %s; --other SIZE says what it does)",
		        tn__system_name(system->kind), tn__human_bytes(system->display, display),
		        tn__human_bytes(system->display_lowest, lowest), tn__human_bytes(system->display_highest, highest));
	if (system->forbidden)
		tn__say(printer, TN_TINT_NONE, 2, "the driver may not use the computer's memory (Prefer No Sysmem Fallback)");
	else if (system->limit != TN_NO_FIGURE)
		tn__say(printer, TN_TINT_NONE, 2,
		        "where the card is full the driver goes on in the computer's memory, up to half of it: %s",
		        tn__human_bytes(system->limit, limit));
	else
		tn__say(printer, TN_TINT_NONE, 2,
		        "where the card is full the driver goes on in the computer's memory, up to half of it "
		        "(--host-memory SIZE says how much there is)");
}
