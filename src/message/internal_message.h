/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of src/message share.
 *
 * Two forms of the text are used. *Clean*: without terminal colours, control characters and box drawing. *Squeezed*:
 * clean, in lower case, without blanks (but one between two digits) and without the marks that open a line (comment,
 * quote, rank), so that a phrase reads the same however it was wrapped. Phrases of the tables are squeezed.
 */
#ifndef TN_MESSAGE_INTERNAL_MESSAGE_H
#define TN_MESSAGE_INTERNAL_MESSAGE_H

#include "message/message.h"

/* ---- families.c ---- */

/* How a number in a message is to be read. */
enum tn_form {
	TN_FORM_SIZE,  /* with a unit, which counts in 1024s */
	TN_FORM_BYTES, /* whole bytes, "bytes" or "B" may follow; also a count of tokens */
	TN_FORM_GIB,   /* GiB, whose unit stands in the phrase before the number */
	TN_FORM_INDEX  /* of a device */
};

/* One phrase around a number. The first phrase of a family's list that holds for any number gives the figure. */
struct tn_phrase {
	int figure; /* enum tn_figure, TN_DEVICE_INDEX, or TN_NEED and an enum tn_message_need */
	enum tn_form form;
	const char *before, *after; /* "" for anything */
};
enum { TN_DEVICE_INDEX = TN_FIGURE_COUNT, TN_NEED, TN_FOUND_COUNT = TN_NEED + TN_NEED_COUNT };

/* How an error without a deciding figure is explained. */
enum tn_rule {
	TN_RULE_CARD,
	TN_RULE_MPS,
	TN_RULE_MPS_BUFFER,
	TN_RULE_LIBRARY,
	TN_RULE_HOST,
	TN_RULE_OTHERS,  /* somebody else's memory */
	TN_RULE_REFUSAL, /* an engine's own plan; nothing failed to allocate */
	TN_RULE_UNKNOWN
};

/* What must hold before a find counts. */
enum tn_proof {
	TN_PROOF_NONE,     /* the phrase is enough */
	TN_PROOF_TOLD,     /* the sentence must not teach what such errors are */
	TN_PROOF_SENTENCE, /* a program's whole sentence: the line must not look like code or prose */
	TN_PROOF_ERROR,    /* as above, and it stands where a program puts an error */
	TN_PROOF_HEADED,   /* as above, and an error's head stands before it, or soon above it */
	TN_PROOF_DEVICE,   /* as above, and the line names a device or a failure */
	TN_PROOF_TORCH,    /* figures, or an error line */
	TN_PROOF_LOG,      /* a remark: the line must look like a log line */
	TN_PROOF_SAID,     /* what people call it, as a word: the sentence or the title must tell that it came */
	TN_PROOF_SHELL     /* "Killed" as a shell says it */
};

struct tn_family {
	const char *name, *said_by;
	bool unclear;
	enum tn_device_kind kind;
	enum tn_rule rule;
	const char *reason;              /* when there is no figure to speak of; NULL: "no sizes are printed" */
	const struct tn_phrase *phrases; /* ended by before == NULL; NULL: none */
	const char *needs;    /* squeezed words of which one must stand in the region, separated by '|'; NULL: nothing */
	const char *refutes;  /* words of which none may stand in the region */
	const char *evidence; /* words of which one must stand in the region or before it; NULL: nothing */
};

/* A phrase that opens or continues a message. */
struct tn_anchor {
	const char *text;
	uint8_t family;
	uint8_t weight; /* the heaviest anchor of a message decides its family */
	uint8_t order;  /* a message's anchors come in rising order; 0: never joins */
	uint16_t reach; /* how far after the one before it may stand, in squeezed characters */
	uint8_t group;  /* only anchors of one group join */
	enum tn_proof proof;
};

enum { TN_GROUP_TORCH = 1 }; /* the others are known to the table only */
enum { TN_WEIGHT_REMARK = 1, TN_WEIGHT_GENERIC = 2, TN_WEIGHT_PLAIN = 5, TN_WEIGHT_FULL = 8 };

/* Families whose words alone tell framework and phase, where frames show none. */
struct tn_engine {
	uint8_t family;
	const char *framework; /* of frameworks.def */
	enum tn_at at;
};

/* What squeezed words near an error tell, separated by '|'. */
struct tn_hint {
	const char *words, *framework;
	enum tn_at at;
};

extern const struct tn_family tn__families[];
extern const struct tn_hint tn__hints[];
extern const struct tn_hint tn__hint_vllm; /* of the names of vLLM's processes */
extern const size_t tn__hint_count;
extern const struct tn_engine tn__engines[];
extern const size_t tn__engine_count;
extern const struct tn_anchor tn__anchors[];
extern const size_t tn__anchor_count;

/* Families that are only told from their relatives once the whole message is known. */
extern const struct tn_family *const tn__family_tensorflow_host,
	*const tn__family_scheduler, *const tn__family_llama_host, *const tn__family_allocation, *const tn__family_lacking;

/* ---- line.c ---- */

/* Cleans `count` bytes of one line into `out` (at least `count` + 1 bytes), ended by NUL; returns the length. */
size_t tn__line_clean(const char *bytes, size_t count, char *out);

/* Where the part of a clean line starts that is not a comment mark, a quote mark, a rank or a container's name. */
size_t tn__line_content(const char *line, size_t length);

/* The rank that a clean line names, or -1. Local ranks and ranks in other groups do not count. */
int64_t tn__line_rank(const char *line, size_t length);

/* Whose line it is: equal numbers for lines of one process, from its rank or pid prefix; 0 without one. */
uint64_t tn__line_owner(const char *line, size_t length, int64_t rank);

/* Where a lower-case word stands in a bounded text, in letters of any case; NULL if nowhere. */
const char *tn__find(const char *text, size_t length, const char *word);

/* Whether the text has one of the lower-case words that `list` names, separated by '|', in letters of any case. */
bool tn__has_any(const char *text, size_t length, const char *list);

/* ---- reports.c ---- */

/* Whether a phrase at [start, end) of a clean line is an error being reported. */
bool tn__line_reports(const char *line, size_t length, size_t start, size_t end, enum tn_proof proof);

/* Whether a phrase in a sentence of a person who had an error (TN_PHRASE_TOLD) counts. */
bool tn__line_confides(const char *line, size_t length, size_t start, size_t end, enum tn_proof proof);

/* ---- placed.c ---- */

enum tn_place_of_phrase {
	TN_PHRASE_NOWHERE,
	TN_PHRASE_PRINTED, /* where a program puts an error */
	TN_PHRASE_TOLD     /* in a sentence of a person who had it */
};

/* Where a phrase at [start, end) of a clean line stands. */
enum tn_place_of_phrase tn__line_placed(const char *line, size_t length, size_t start, size_t end);

/* ---- told.c ---- */

/* What the words of a sentence before a phrase say of it. */
struct tn_heard {
	bool own, alone; /* the writer speaks of his own program; one writes, not "we" of a company */
	bool came, once; /* an error came; at one time */
	bool doubted;    /* it is feared, avoided, gone, or asked for */
	bool advised;
};

/* Where the sentence starts that `start` lies in. */
size_t tn__sentence_start(const char *line, size_t start);

struct tn_heard tn__hear(const char *line, size_t first, size_t last);

/* Whether the sentence around a phrase at [start, end) of a clean line says that it came, to who writes. */
bool tn__line_told(const char *line, size_t length, size_t start, size_t end);

/* Whether nothing in the sentence around a phrase at [start, end) of a clean line doubts that it came, or advises. */
bool tn__line_may_tell(const char *line, size_t length, size_t start, size_t end);

/* Whether a clean line is the title of a thread or a page. */
bool tn__line_is_title(const char *line, size_t length);

/* Whether a title is spelt as headings are, and says nothing of one machine. */
bool tn__line_is_heading(const char *line, size_t length);

/* Whether a clean line is a title that reports the phrase at [start, end). */
bool tn__title_reports(const char *line, size_t length, size_t start, size_t end);

/* Whether a clean line is a title that wishes, asks or announces something in its words before `start`. */
bool tn__title_wishes(const char *line, size_t length, size_t start, size_t end);

/* ---- prose.c ---- */

/* Whether the sentence around a phrase at [start, end) of a clean line teaches what such errors are. */
bool tn__line_teaches(const char *line, size_t length, size_t start, size_t end);

/* Whether a sentence of nobody's own leads to a phrase at `start`. */
bool tn__line_prose_before(const char *line, size_t start);

/* Who speaks in a text: in how many sentences somebody of himself or to others, in how many in general, in how many
 * somebody has trouble; in how many lines a page speaks of itself, or a change of what it does, and in how many another error
 * is shown. */
struct tn_voice {
	uint32_t own, general, trouble, lectures, others;
};

/* Adds the sentences of a clean line; `title`: it is the text's. */
void tn__voice_read(struct tn_voice *voice, const char *line, size_t length, bool title);

/* Whether a text teaches: it speaks in general, and nobody of himself. */
bool tn__voice_teaches(const struct tn_voice *voice);

/* Whether somebody writes because something of his fails, and not to teach or to change a program. */
bool tn__voice_complains(const struct tn_voice *voice);

/* ---- code.c ---- */

/* Whether a clean line is one of a program's source, and not of a log that looks like it. */
bool tn__line_is_code(const char *line, size_t length);

/* The last sixteen lines, a bit each. */
struct tn_code_around {
	uint16_t code, other; /* source; neither source nor what stands in logs and source alike */
	bool quoted;          /* within a string of several lines that holds a traceback, or a docstring */
	bool docstring;       /* ... and it is a docstring */
};

/* Adds a clean line; `traced`: it is one of a traceback. */
void tn__code_read(struct tn_code_around *around, const char *line, size_t length, bool traced);

/* Whether the line behind those stands in source. */
bool tn__code_is_around(const struct tn_code_around *around);

/* Whether a clean line begins, without blanks, with the name of an exception: what runs code prints behind it. */
bool tn__line_opens_with_error(const char *line, size_t length);

/* Whether a clean line is a comment within source: behind blanks, "#", "//" or "*". */
bool tn__line_is_comment(const char *line, size_t length);

/* Whether a phrase at [start, end) of a line of source is in a string, or a name. */
bool tn__phrase_is_string_or_name(const char *line, size_t length, size_t start, size_t end);

/* ---- pages.c ---- */

/* Whether a clean line is the heading of a chapter about errors: "Troubleshooting". */
bool tn__line_opens_chapter(const char *line, size_t length);

/* Whether a clean line is the title of a page about errors: "..., what it means and how to fix it". */
bool tn__line_titles_page(const char *line, size_t length);

/* Whether a clean line heads what to do about an error: "**Solution**: ...". */
bool tn__line_heads_remedy(const char *line, size_t length);

/* ---- spoken.c ---- */

/* Whether a phrase at [start, end) of a clean line stands in a string of a program that raises or looks for an error. */
bool tn__line_is_source(const char *line, size_t length, size_t start, size_t end);

/* Whether a phrase there stands in something that speaks of errors; figures in it prove more. */
bool tn__line_speaks(const char *line, size_t length, size_t start, size_t end);

/* Whether a clean line has the mark of a search ("src/guard.py:12:") and what it found. */
bool tn__line_found(const char *line, size_t length);

/* Whether a clean line is one of a change ("@@ -1,2 +1,3 @@" and what follows); `before`: the line before was. */
bool tn__line_in_change(const char *line, size_t length, bool before);

/* Prose that announces an error that may come, or a wording, and what it announces. */
enum tn_example {
	TN_EXAMPLE_NONE,
	TN_EXAMPLE_NEXT,   /* the next line, or the block that it opens */
	TN_EXAMPLE_BLOCK,  /* until "```" */
	TN_EXAMPLE_TAUGHT, /* "If you get this error": no figures in its block are anybody's */
	TN_EXAMPLE_TAUGHT_BLOCK
};

/* What holds behind a clean line. */
enum tn_example tn__line_example(const char *line, size_t length, enum tn_example before);

/* ---- place.c ---- */

/* How a frame tells a phase; what each kind weighs for each phase stands in phase_weights.def. */
enum tn_evidence {
	TN_EVIDENCE_GUESS, /* a file's name */
	TN_EVIDENCE_WORD,  /* a word in a function's name */
	TN_EVIDENCE_NAME,  /* a function's whole name, or the code of a frame */
	TN_EVIDENCE_ENTRY, /* a known function of a known library */
	TN_EVIDENCE_COUNT
};

enum { TN_PLACE_PACKAGE = sizeof(((struct tn_message *)0)->package) };

/* What some frames of a traceback tell, outermost first; all zero for no frames. */
struct tn_place {
	uint8_t evidence[TN_AT_COUNT];  /* of each phase, a bit a kind */
	uint8_t innermost[TN_AT_COUNT]; /* the last frame that told it, counted from 1 */
	uint8_t count;                  /* frames, as far as they can be counted */
	uint8_t operation;              /* enum tn_at of an operation that is named as the one that failed */
	uint8_t framework;              /* row, 0 for none */
	char package[TN_PLACE_PACKAGE]; /* the outermost of no row whose functions drive a run, "" for none */
	bool frames;                    /* there were any ... */
	bool program;                   /* ... that do more than carry errors on */
	bool foreign;                   /* ... of what computes without PyTorch */
};

/* Whether some frame, or the code of one, tells a phase. */
bool tn__place_tells(const struct tn_place *place);

/* Adds the place of frames that lie within those seen so far. */
void tn__place_join(struct tn_place *place, const struct tn_place *inner);

/* Adds a frame; its function may be empty. */
void tn__place_frame(struct tn_place *place, const char *path, size_t length, const char *function,
                     size_t function_length);

/* Adds the shown line of the frame that was added last. */
void tn__place_code(struct tn_place *place, const char *code, size_t length);

/* Adds an operation of TensorFlow's graph, by its name in small letters. */
void tn__place_node(struct tn_place *place, const char *name, size_t length);

/* The one of two rows of frameworks.def that has the options that a user sets. */
uint8_t tn__place_higher(uint8_t framework, uint8_t other);

/* Sets phase and framework of a message. `family` is where it stands in tn__families, `hint` what words near it tell
 * (NULL:
 * nothing), `others` a framework that frames of other processes show (0: none). */
void tn__place_tell(const struct tn_place *place, const struct tn_family *family, const struct tn_hint *hint,
                    uint8_t others, struct tn_message *message);

/* ---- frame.c ---- */

/* What a line is in a traceback. */
enum tn_trace_line {
	TN_TRACE_OTHER,
	TN_TRACE_START, /* "Traceback (most recent call last)" */
	TN_TRACE_FRAME,
	TN_TRACE_SOURCE, /* shown code, carets, blank lines */
	TN_TRACE_END     /* the exception's own line */
};

/* Frames are read line by line; what a wrapped or two-line frame needs is kept here. */
struct tn_frame_reader {
	char partial[TN_MESSAGE_CULPRIT]; /* a path whose line is not known yet */
	bool awaits_arrow;                /* the line number follows in "--> 12" */
	bool awaits_quote;                /* the path goes on in the next line */
	bool awaits_number;               /* the path is whole, "line 12" is in the next line */
	bool awaits_function;             /* "path.py:12 in" was cut there, the name is in the next line */
	bool awaits_in;                   /* "path.py:12" was cut there, "in name" is in the next line */
	bool awaits_rest;                 /* a box cut the path itself, its rest and the line are in the next line */
	bool awaits_code;                 /* the next line shows the code of a frame */
};

/* What a line of a traceback shows. */
struct tn_frames {
	char culprit[TN_MESSAGE_CULPRIT]; /* "file:line" of the last frame of the user's own code ... */
	bool own;                         /* ... if there is one */
	struct tn_place place;
};

/* Reads a clean line as one of a traceback; `found` is filled in. */
enum tn_trace_line tn__frame_read(struct tn_frame_reader *reader, const char *line, size_t length,
                                  struct tn_frames *found);

/* Whether a frame goes on in the next line. */
bool tn__frame_goes_on(const struct tn_frame_reader *reader);

/* Whether a path belongs to installed packages or the standard library. */
bool tn__frame_is_library(const char *path, size_t length);

/* ---- figures.c ---- */

/* Fills figures, device index, processes and the details of the form from a squeezed region. */
void tn__figures_read(const struct tn_family *family, const char *squeezed, size_t length, struct tn_message *message);

/* ---- cause.c, advice.c ---- */

/* Sets cause and reason from the figures, by the rule list. */
void tn__cause_judge(const struct tn_family *family, struct tn_message *message);

/* What a line shows of advice.def, a bit each. */
uint64_t tn__advice_shown(const char *line);

/* Sets the advice that goes with cause, family, phase, framework and the run's settings. */
struct tn_seen;
void tn__advise(struct tn_message *message, const struct tn_seen *seen);

#endif
