/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose a source file is, by its path: the user's own, of a package, of PyTorch. Pure: no file is looked at.
 */
#ifndef TN_VERDICT_PATHS_H
#define TN_VERDICT_PATHS_H

#include "verdict/model.h"

/* Outside PyTorch, other packages and the standard library: the same rule as the guest's (doc/design/0002-run-protocol.md). */
bool tn__is_users_own(const char *file);

/* The path below the folder that packages are installed in; points into `file`. NULL when it is not of a package. */
const char *tn__path_in_package(const char *file);

/* What remains of a file's name on another machine: below the working folder, or below the folder that packages are
 * installed in; else the whole. Points into `file`. */
const char *tn__portable_path(const struct tn_report *report, const char *file);

/* True for files of the program and of packages, false for those of PyTorch and the standard library. */
bool tn__is_outside_torch(const char *file);

/* True for a cell of a notebook in the place of a file: "cell 4", "cell 4 (run 2)". */
bool tn__is_cell(const char *file);

/* What stands between a place's file and its line: ":", or ", line " for a cell of a notebook. */
const char *tn__before_line(const char *file);

/* The last part of a path. */
const char *tn__file_name(const char *file);

#endif
