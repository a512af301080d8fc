/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of an examination, in the order in which they are made: each adds facts and may use what those before it found.
 * Internal to src/doctor.
 */
#ifndef TN_DOCTOR_CHECKS_H
#define TN_DOCTOR_CHECKS_H

#include "doctor/doctor.h"

#define TN_TEXT_MAX ((size_t)4 << 20)

void tn__check_host_kind(const struct tn_machine *machine, struct tn_diagnosis *out); /* WSL, container */
void tn__check_driver(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_devices(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_cards(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_errors(const struct tn_machine *machine, struct tn_diagnosis *out, unsigned card, void *device);
void tn__check_processes(const struct tn_machine *machine, struct tn_diagnosis *out, unsigned card, void *device);
void tn__check_kernel_log(const struct tn_machine *machine, struct tn_diagnosis *out);
tn_status tn__find_torch(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_torch(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_packages(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_toolkit(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_visible(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_settings(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_allocator(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_host(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__check_limits(const struct tn_machine *machine, struct tn_diagnosis *out);

/* ---- facts ---- */

/* Adds a fact (printf form). The pointer is good until the next one is added; without memory it is a spare that nobody sees. */
struct tn_fact *tn__fact(struct tn_diagnosis *out, enum tn_machine_part part, enum tn_level level, const char *id,
                         int card, const char *format, ...) __attribute__((format(printf, 6, 7)));
void tn__fact_meaning(struct tn_diagnosis *out, struct tn_fact *fact, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void tn__fact_remedy(struct tn_diagnosis *out, struct tn_fact *fact, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- files below the root ---- */

/* The path below the root; NULL without memory or where it is too long. The caller frees. */
char *tn__rooted(const struct tn_machine *machine, const char *path);
/* The first TN_TEXT_MAX bytes of a file, ended with a zero (zeros within become blanks); NULL where it cannot be read. Never
 * waits. The caller frees. */
char *tn__read_text(const struct tn_machine *machine, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The first line of a file in `line` (without its end); false where it cannot be read. */
bool tn__read_line(const struct tn_machine *machine, char *line, size_t capacity, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
bool tn__exists(const struct tn_machine *machine, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Calls `each` with the names in a folder, until it returns false. The order is that of the names. */
void tn__each_name(const struct tn_machine *machine, const char *folder, bool (*each)(void *context, const char *name),
                   void *context);

/* The value of a variable of the environment, or NULL. */
const char *tn__variable(const struct tn_machine *machine, const char *name);

/* The text behind "Name:" and blanks in a file of such lines, or NULL. It ends at the line's end, not with a zero. */
const char *tn__field(const char *text, const char *name);
/* A number behind blanks; false where there is none, or where it is larger than 2^63. */
bool tn__number(const char *text, uint64_t *out);

/* "570.86.15" or "12.8": the first two numbers as major * 1000 + minor, 0 for anything else. */
int tn__version_number(const char *text);

/* A time for people, in the time zone of the process; "unknown" for 0. Returns `buffer`. */
const char *tn__doctor_time(int64_t seconds, char buffer[32]);

/* ---- NVML ---- */

enum { /* nvmlReturn_t of nvml.h */
	   TN_NVML_NO_PERMISSION = 4,
	   TN_NVML_DRIVER_NOT_LOADED = 9,
	   TN_NVML_LOST = 15,
	   TN_NVML_MISMATCH = 18,
	   TN_NVML_ABSENT = -1 /* ours: the library has no function of that name */
};

/* Functions of NVML by their shapes. Each returns NVML's status, or TN_NVML_ABSENT. */
int tn__nvml_start(const struct tn_nvml *nvml);
int tn__nvml_system(const struct tn_nvml *nvml, const char *name, void *out);
int tn__nvml_system_text(const struct tn_nvml *nvml, const char *name, char *text, unsigned capacity);
int tn__nvml_handle(const struct tn_nvml *nvml, unsigned index, void **device);
int tn__nvml_ask(const struct tn_nvml *nvml, void *device, const char *name, void *out);
int tn__nvml_ask_text(const struct tn_nvml *nvml, void *device, const char *name, char *text, unsigned capacity);
int tn__nvml_ask_two(const struct tn_nvml *nvml, void *device, const char *name, void *first, void *second);
int tn__nvml_ask_four(const struct tn_nvml *nvml, void *device, const char *name, unsigned out[4]);
int tn__nvml_ask_kind(const struct tn_nvml *nvml, void *device, const char *name, int kind, void *out);
int tn__nvml_ask_kinds(const struct tn_nvml *nvml, void *device, const char *name, int kind, int other, void *out);

/* ---- versions ---- */

/* The oldest driver branch that runs programs of a CUDA release (its major number); 0: unknown. */
int tn__oldest_driver(int cuda_major);
/* Whether code of a wheel runs on a compute capability: by code of its own, by PTX, or not. */
enum tn_kernels { TN_KERNELS_NONE, TN_KERNELS_PTX, TN_KERNELS_OWN };
enum tn_kernels tn__kernels_for(const struct tn_doctor_torch *torch, int major, int minor);

#endif
