/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands between a CUDA program and the cards of a machine: driver, cards, who holds their memory, the environment, the
 * host's limits, and the PyTorch of a Python.
 *
 * Everything is read from files (/proc, /sys, /dev, the packages of a Python) and from NVML. No program is started, PyTorch is
 * not imported and no context is made, so that asking takes nothing from a card. A machine is a struct, so that a test can put
 * a fault in.
 */
#ifndef TN_DOCTOR_DOCTOR_H
#define TN_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h"

#define TN_DOCTOR_CARDS 64
#define TN_DOCTOR_PROCESSES 256
#define TN_DOCTOR_ARCHITECTURES 32

/* NVML, by the names of its functions: `find` is dlsym of `library`. */
struct tn_nvml {
	void *(*find)(void *library, const char *name);
	void *library;
};

/* What is looked at. All of it is lent. */
struct tn_machine {
	const char *root;           /* "": this machine; else the folder below which every path is looked up */
	char *const *environment;   /* as environ: ends with NULL */
	const struct tn_nvml *nvml; /* NULL: libnvidia-ml.so.1 could not be opened */
	const char *python;         /* a Python's path, or NULL */
	bool python_named;          /* it was asked for: that it has no torch is worth a warning */
	int64_t now;                /* seconds since 1970 */
	long own_pid;
	/* Bytes of the file system at `path`; NULL: statvfs below root. */
	bool (*space)(const struct tn_machine *machine, const char *path, uint64_t *total, uint64_t *available);
};

/* Opens this machine's NVML; false where there is none. It stays open. */
bool tn__nvml_open(struct tn_nvml *out);

enum tn_level {
	TN_LEVEL_FINE,    /* a fact to know */
	TN_LEVEL_HINT,    /* works; could be better */
	TN_LEVEL_WARNING, /* something will go wrong, or go slowly */
	TN_LEVEL_ERROR    /* CUDA programs cannot run, or not on this card */
};

enum tn_machine_part {
	TN_PART_DRIVER,
	TN_PART_CARD,
	TN_PART_MEMORY,
	TN_PART_TOOLKIT,
	TN_PART_TORCH,
	TN_PART_SETTINGS,
	TN_PART_HOST,
	TN_PARTS
};

struct tn_fact {
	enum tn_machine_part part;
	enum tn_level level;
	const char *id; /* stable, for programs */
	int card;       /* or -1 */
	char *what;     /* the fact */
	char *meaning;  /* what follows from it, or NULL */
	char *remedy;   /* what to do, or NULL */
};

struct tn_doctor_card {
	unsigned index;
	char name[96], uuid[96], bus[32];
	bool lost, memory_known;
	uint64_t total, available, used; /* bytes; `used` without what the driver keeps for itself where that is known */
	int major, minor;                /* compute capability; 0: unknown */
	bool mig;
};

struct tn_doctor_process {
	int card;
	unsigned pid;
	uint64_t bytes;
	bool bytes_known, visible, orphan, own;
	char user[64], command[160], container[80];
	int64_t since; /* seconds since 1970; 0: unknown */
};

struct tn_doctor_architecture {
	int number;      /* 86 for 8.6 */
	bool ptx, whole; /* PTX, not code of its own; whole: each kernel is there */
};

struct tn_doctor_torch {
	char *packages;                         /* the folder that torch lies in; NULL: no torch */
	char python[16], version[48], cuda[16]; /* "3.11", "2.11.0+cu130", "13.0"; "": none */
	bool rocm;
	bool script; /* the Python is a script that starts another one */
	struct tn_doctor_architecture architectures[TN_DOCTOR_ARCHITECTURES];
	size_t architecture_count; /* 0: not known */
};

struct tn_diagnosis {
	struct tn_fact *facts;
	size_t count, capacity;
	bool no_memory;
	char driver[48]; /* the kernel module's version, or NVML's; "": unknown */
	int driver_cuda; /* 12080 for 12.8; 0: unknown */
	bool container, wsl;
	struct tn_doctor_card cards[TN_DOCTOR_CARDS];
	size_t card_count;
	struct tn_doctor_process processes[TN_DOCTOR_PROCESSES];
	size_t process_count;
	char toolkit[16]; /* "12.4"; "": none */
	struct tn_doctor_torch torch;
};

/* Looks at everything. TN_NOT_FOUND with words when machine->python is not there. Released with tn__diagnosis_free. */
tn_status tn__doctor_examine(const struct tn_machine *machine, struct tn_diagnosis *out);
void tn__diagnosis_free(struct tn_diagnosis *diagnosis);

/* How many facts have this level. */
size_t tn__diagnosis_count(const struct tn_diagnosis *diagnosis, enum tn_level level);

#endif
