/* SPDX-License-Identifier: Apache-2.0
 *
 * How a change is spelled, as a user types it and as TONNAGE_CHANGES has it (doc/design/0009-changes.md): parts such as
 * "accumulate=4", joined by commas; and what a change promises of the program's results. A piece between commas that does not
 * begin with the name of a change belongs to the value before it: "alloc=max_split_size_mb:64,garbage_collection_threshold:0.8"
 * is one part.
 */
#ifndef TN_CHANGE_H
#define TN_CHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "tonnage/status.h"

#define TN_CHANGE_WITHOUT_OTHERS "end_other_processes" /* no change of the program */
#define TN_CHANGE_NOTHING "nothing"         /* is applied and changes nothing: tests of the comparison ask for it */
#define TN_CHANGE_SHARD_STATE "shard_state" /* cards send each other more than they did */
#define TN_CHANGE_SURVEY "survey"           /* changes nothing: what can be tried is written down */

/* What a change promises of the program's results. Ordered: worst last. */
enum tn_guarantee { TN_GUARANTEE_SAME, TN_GUARANTEE_ROUNDING, TN_GUARANTEE_DIFFERENT };

/* "same", "same_up_to_rounding", "different_training". */
const char *tn__guarantee_name(enum tn_guarantee promise);
/* Of such a name; different results where it is another one, or NULL. */
enum tn_guarantee tn__guarantee_of(const char *name);

/* The change that a part is of: "accumulate" of "accumulate=4", into `id`, which is returned. */
const char *tn__change_id(const char *part, char id[64]);
/* True where the part is of the change of this name. */
bool tn__change_is(const char *part, const char *id);
/* The number behind the "=" of a part; 0 where there is none. */
int tn__change_number(const char *part);

/* "accumulate=4", or "zero_grad" where there is no value; the caller frees; NULL without memory. */
char *tn__change_part(const char *id, const char *value);
/* Adds a part to a list of them, which the caller frees and which may be NULL; without memory it stays as it is. */
void tn__change_join(char **changes, const char *part);

/* ---- change_list.c: several changes ---- */

/* The parts of a list of them; plain data. */
struct tn_change_list {
	char **parts;
	size_t count, capacity;
};

/* Splits "accumulate=4,alloc=a:1,b:2" into its parts, without the blanks around commas; NULL has none. Names that are not known
 * stay. TN_NO_MEMORY. Release with tn__change_list_free. */
tn_status tn__change_split(const char *changes, struct tn_change_list *list);
void tn__change_list_free(struct tn_change_list *list);

/* ---- change_command.c: changes that are options of the program's own ---- */

/* True for a part such as "option_accumulate=--batch-size 2 --grad-accum-steps 4". */
bool tn__change_is_option(const char *part);
/* True where all parts are. */
bool tn__change_is_own(const char *changes);
/* True where an option among the changes is written on the command line, and not only in the environment or a file. */
bool tn__change_is_on_line(const char *changes);
/* True where all are options, and a command line or its environment says some of them: there is a line to copy. */
bool tn__change_is_command(const char *changes);
/* The command line with the options of these changes: in the place of those that stand there, else at the end. Ended by NULL;
 * release with tn__change_command_free; NULL without memory. */
char **tn__change_command(char *const *arguments, const char *changes);
/* The same for a person, with the variables of the environment: "env BATCH_SIZE=4" stands before it. */
char **tn__change_command_to_copy(char *const *arguments, const char *changes);
void tn__change_command_free(char **arguments);
/* "a smaller batch (8)", for a person: of values that do not stand on the command line "a.yaml: b=1" and "NAME=value". The caller frees;
 * NULL without memory. `value` may be NULL. */
char *tn__change_title(const char *title, const char *value);

#endif
