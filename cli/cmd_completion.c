/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage completion: scripts for bash, zsh and fish, made of the commands' own options and help. Nothing is asked of the command
 * while somebody types, so that no keypress waits for it; cards and changes are those of this version.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "completion_scripts.h"
#include "tonnage/fix.h"
#include "tonnage/gpu.h"
#include "tonnage/run.h" /* exit statuses */

#define HELP_COLUMN "  " /* two blanks stand before what an option does */

static const char help[] =
	"usage: tonnage completion bash|zsh|fish\n"
	"\n"
	"Writes a script that completes commands, options, cards, changes, files, and what follows --.\n"
	"\n"
	"  --help  this text\n"
	"\n"
	"  tonnage completion bash >~/.local/share/bash-completion/completions/tonnage\n"
	"  tonnage completion zsh >~/.zfunc/_tonnage      # a folder of fpath, before compinit\n"
	"  tonnage completion fish >~/.config/fish/completions/tonnage.fish\n";

const struct command *const *completed_commands;

enum { HELP = 1 };

static const struct option long_options[] = {
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

/* ---- what an option takes ---- */

enum { FILES = 1, CARDS = 2, CHANGES = 4, LIST = 8 }; /* LIST: several, with commas between them */

struct values {
	const char *words; /* separated by blanks */
	unsigned kinds;
};

/* Of options that do not take files; command NULL: any. */
static const struct {
	const char *command, *option;
	struct values values;
} known_values[] = {
	{ "fit", "gpu", { "auto", CARDS | LIST } },
	{ "fit", "vary", { "batch= length=", 0 } },
	{ "validate", "gpu", { "", CARDS } },
	{ NULL, "gpu", { "auto real", CARDS } },
	{ NULL, "steps", { "auto all", 0 } },
	{ NULL, "init", { "skip real", 0 } },
	{ NULL, "weights", { "auto shape real", 0 } },
	{ NULL, "data", { "real shape", 0 } },
	{ NULL, "inputs", { "as_is longest pad=", 0 } },
	{ NULL, "values", { "small all", 0 } },
	{ NULL, "assume", { "full none", 0 } },
	{ NULL, "writes", { "scratch allow", 0 } },
	{ NULL, "network", { "closed allow", 0 } },
	{ NULL, "host", { "linux windows wsl", 0 } },
	{ NULL, "sysmem-fallback", { "allow forbid", 0 } },
	{ NULL, "at", { "peak oom end", 0 } },
	{ NULL, "apply", { "", CHANGES } },
};

/* The line of help about an option, from its name on; NULL where there is none. */
static const char *
help_of(const struct command *command, const char *option)
{
	char name[64];
	snprintf(name, sizeof(name), "--%s", option);
	for (const char *at = command->help; (at = strstr(at, name)) != NULL; at++) {
		const char *line = at, *end = at + strlen(name);
		while (line > command->help && line[-1] != '\n')
			line--;
		if (strncmp(line, "  --", 4) == 0 && (*end == ' ' || *end == '\n'))
			return at;
	}
	return NULL;
}

/* The word in capitals behind an option says whether it is a file. */
static bool
takes_file(const struct command *command, const char *option)
{
	static const char *const files[] = { "FILE", "SNAPSHOT", "[OUT]", "OTHER", "PATH" };
	const char *at = help_of(command, option), *word = at != NULL ? at + strlen("-- ") + strlen(option) : "";
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strncmp(word, files[i], strlen(files[i])) == 0)
			return true;
	return false;
}

static struct values
values_of(const struct command *command, const char *option)
{
	for (size_t i = 0; i < sizeof(known_values) / sizeof(known_values[0]); i++)
		if (strcmp(known_values[i].option, option) == 0 &&
		    (known_values[i].command == NULL || strcmp(known_values[i].command, command->name) == 0))
			return known_values[i].values;
	return (struct values){ "", takes_file(command, option) ? FILES : 0 };
}

/* What an option does, in some words: its line of help up to the first stop. "" where that begins with its values. */
static void
describe(const struct command *command, const char *option, char out[128])
{
	const char *at = help_of(command, option), *text = strstr(at, HELP_COLUMN), *end = strchr(at, '\n');
	out[0] = '\0';
	if (text == NULL || text > end)
		return;
	text += strspn(text, " ");
	snprintf(out, 128, "%.*s", (int)strcspn(text, "(;:,\n"), text);
	for (size_t length = strlen(out); length > 0 && out[length - 1] == ' '; length--)
		out[length - 1] = '\0';
	if (values_of(command, option).words[0] != '\0' && strchr(out, ' ') == NULL)
		out[0] = '\0';
}

/* The next option that help tells, from that one on; NULL behind the last. */
static const struct option *
next_option(const struct command *command, const struct option *option)
{
	while (option->name != NULL && help_of(command, option->name) == NULL)
		option++;
	return option->name != NULL ? option : NULL;
}

#define EACH_OPTION(option, command) \
	(const struct option *option = (command)->options; (option = next_option(command, option)) != NULL; option++)

/* ---- lists ---- */

static void
print_cards(void)
{
	const char *alias;
	for (size_t i = 0; (alias = tn_gpus_alias_at(i)) != NULL; i++)
		printf("%s%s", i > 0 ? " " : "", alias);
}

/* Each with "=" behind it: a value follows, or is left out. */
static void
print_changes(void)
{
	const char *name;
	for (size_t i = 0; (name = tn_change_at(i, NULL)) != NULL; i++)
		if (strcmp(name, "nothing") != 0)
			printf("%s%s=", i > 0 ? " " : "", name);
}

static void
print_commands(void)
{
	for (size_t i = 0; completed_commands[i] != NULL; i++)
		printf("%s%s", i > 0 ? " " : "", completed_commands[i]->name);
}

static const char *
operands_word(const struct command *command)
{
	static const char *const words[] = {
		[NO_OPERAND] = "NOTHING", [A_PROGRAM] = "PROGRAM", [A_FILE] = "FILES", [A_CARD] = "CARDS", [A_SHELL] = "SHELLS"
	};
	return words[command->operands];
}

/* ---- bash ---- */

/* "--gpu=auto,real,CARDS", "--quiet": what the script's own part reads. */
static void
print_bash_option(const struct command *command, const struct option *option)
{
	struct values values = values_of(command, option->name);
	printf(" --%s", option->name);
	if (option->has_arg == no_argument)
		return;
	printf(option->has_arg == optional_argument ? "?" : "=");
	for (const char *c = values.words; *c != '\0'; c++)
		putchar(*c == ' ' ? ',' : *c);
	printf("%s%s%s%s", values.kinds & FILES ? ",FILES" : "", values.kinds & CARDS ? ",CARDS" : "",
	       values.kinds & CHANGES ? ",CHANGES" : "", values.kinds & LIST ? ",LIST" : "");
}

static void
print_bash(void)
{
	printf("# bash completion of tonnage %s, made by tonnage completion bash\n\n_tonnage_cards='", TONNAGE_VERSION);
	print_cards();
	printf("'\n_tonnage_changes='");
	print_changes();
	printf(
		"'\n\n# What a command takes: its operands, and its options with their values.\n_tonnage_table()\n{\n\tcase $1 in\n\t\t'') echo '");
	print_commands();
	puts("' ;;");
	for (size_t i = 0; completed_commands[i] != NULL; i++) {
		printf("\t\t%s) echo '%s", completed_commands[i]->name, operands_word(completed_commands[i]));
		for
			EACH_OPTION(option, completed_commands[i])
		print_bash_option(completed_commands[i], option);
		puts("' ;;");
	}
	fputs("\tesac\n}\n", stdout);
	fputs(completion_bash, stdout);
}

/* ---- zsh ---- */

/* Inside single quotes, within a specification of _arguments. */
static void
print_zsh_text(const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (strchr("[]:\\", *text) != NULL)
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void
print_zsh_values(struct values values)
{
	const char *gap = values.words[0] != '\0' ? " " : "";
	if (values.kinds & FILES)
		fputs("_files", stdout);
	else if (values.kinds & CHANGES)
		fputs("{compadd -S \"\" -- $_tonnage_changes}", stdout);
	else if (values.kinds & LIST)
		printf("_sequence compadd - %s%s$_tonnage_cards", values.words, gap);
	else
		printf("(%s%s)", values.words, values.kinds & CARDS ? " $_tonnage_cards" : "");
}

static void
print_zsh_option(const struct command *command, const struct option *option)
{
	char text[128];
	bool optional = option->has_arg == optional_argument;
	describe(command, option->name, text);
	printf(" \\\n\t\t\t\t'--%s%s[", option->name, option->has_arg != no_argument ? "=" : "");
	print_zsh_text(text[0] != '\0' ? text : option->name);
	putchar(']');
	if (option->has_arg != no_argument) {
		printf("%s%s:", optional ? "::" : ":", option->name);
		print_zsh_values(values_of(command, option->name));
	}
	putchar('\'');
}

static void
print_zsh(void)
{
	static const char *const operands[] = { [NO_OPERAND] = "",
		                                    [A_PROGRAM] = "*::program:_normal",
		                                    [A_FILE] = "*:file:_files",
		                                    [A_CARD] = "1:card:($_tonnage_cards)",
		                                    [A_SHELL] = "1:shell:(bash zsh fish)" };
	printf("#compdef tonnage\n# zsh completion of tonnage %s, made by tonnage completion zsh\n\n_tonnage_cards=(",
	       TONNAGE_VERSION);
	print_cards();
	printf(")\n_tonnage_changes=(");
	print_changes();
	puts(")\n_tonnage_commands=(");
	for (size_t i = 0; completed_commands[i] != NULL; i++) {
		printf("\t'%s:", completed_commands[i]->name);
		print_zsh_text(completed_commands[i]->summary);
		puts("'");
	}
	puts(")\n\n_tonnage_command()\n{\n\tcase $1 in");
	for (size_t i = 0; completed_commands[i] != NULL; i++) {
		const struct command *command = completed_commands[i];
		printf("\t\t%s)\n\t\t\t_arguments -S", command->name);
		for
			EACH_OPTION(option, command)
		print_zsh_option(command, option);
		if (command->operands != NO_OPERAND)
			printf(" \\\n\t\t\t\t'%s'", operands[command->operands]);
		puts("\n\t\t\t;;");
	}
	fputs("\tesac\n}\n", stdout);
	fputs(completion_zsh, stdout);
}

/* ---- fish ---- */

static void
print_fish_text(const char *text)
{
	for (; *text != '\0'; text++)
		printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
}

static void
print_fish_option(const struct command *command, const struct option *option)
{
	struct values values = values_of(command, option->name);
	char text[128];
	describe(command, option->name, text);
	printf("complete -c tonnage -n '__tonnage_at %s' -l %s", command->name, option->name);
	if (option->has_arg == required_argument)
		printf(values.kinds & FILES ? " -r -F" : " -x");
	if (values.kinds & CHANGES)
		printf(" -a \"$__tonnage_changes\"");
	else if (values.kinds & LIST)
		printf(" -a \"(__fish_append , %s $__tonnage_cards)\"", values.words);
	else if (values.kinds & CARDS || values.words[0] != '\0')
		printf(" -a \"%s%s\"", values.words, values.kinds & CARDS ? " $__tonnage_cards" : "");
	if (text[0] != '\0') {
		printf(" -d '");
		print_fish_text(text);
		putchar('\'');
	}
	putchar('\n');
}

/* For each command, its options that take a word of their own: these are not operands. */
static void
print_fish_takers(void)
{
	puts("function __tonnage_takes\n\tswitch $argv[1]");
	for (size_t i = 0; completed_commands[i] != NULL; i++) {
		printf("\t\tcase %s\n\t\t\tcontains -- $argv[2]", completed_commands[i]->name);
		for
			EACH_OPTION(option, completed_commands[i])
		if (option->has_arg == required_argument)
			printf(" --%s", option->name);
		putchar('\n');
	}
	puts("\tend\nend");
}

static void
print_fish(void)
{
	printf("# fish completion of tonnage %s, made by tonnage completion fish\n\nset -g __tonnage_cards ",
	       TONNAGE_VERSION);
	print_cards();
	printf("\nset -g __tonnage_changes ");
	print_changes();
	printf("\nset -g __tonnage_programs");
	for (size_t i = 0; completed_commands[i] != NULL; i++)
		if (completed_commands[i]->operands == A_PROGRAM)
			printf(" %s", completed_commands[i]->name);
	puts("\n");
	print_fish_takers();
	fputs(completion_fish, stdout);
	for (size_t i = 0; completed_commands[i] != NULL; i++) {
		const struct command *command = completed_commands[i];
		printf("\ncomplete -c tonnage -n '__tonnage_at' -a %s -d '", command->name);
		print_fish_text(command->summary);
		puts("'");
		for
			EACH_OPTION(option, command)
		print_fish_option(command, option);
		if (command->operands == A_FILE)
			printf("complete -c tonnage -n '__tonnage_at %s' -F\n", command->name);
		else if (command->operands == A_CARD || command->operands == A_SHELL)
			printf("complete -c tonnage -n '__tonnage_at %s' -a \"%s\"\n", command->name,
			       command->operands == A_CARD ? "$__tonnage_cards" : "bash zsh fish");
	}
}

static int
cmd_completion(int argc, char **argv)
{
	static const struct {
		const char *shell;
		void (*print)(void);
	} writers[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == HELP)
			return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
		return wrong_usage("completion: unknown option %s (tonnage completion --help)", argv[optind - 1]);
	}
	if (argc - optind != 1)
		return wrong_usage("completion: name one shell: bash, zsh or fish");
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		if (strcmp(writers[i].shell, argv[optind]) != 0)
			continue;
		writers[i].print();
		return fflush(stdout) != 0 || ferror(stdout) ? TN_EXIT_OWN_FAILURE : 0;
	}
	return wrong_usage("completion: \"%s\" is no shell that there is a script for: bash, zsh or fish", argv[optind]);
}

const struct command completion_command = {
	"completion",   "a script that completes this command's words in bash, zsh or fish",
	cmd_completion, long_options,
	help,           A_SHELL
};
