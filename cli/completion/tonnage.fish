
# The index of the program's first word among the words before the cursor, or one more than there are when it is due behind --; nothing
# when it has not begun.
function __tonnage_program_at
	set -l words (commandline -opc)
	contains -- "$words[2]" $__tonnage_programs explain; or return 1
	set -l at 3
	while test $at -le (count $words)
		switch $words[$at]
			case --
				echo (math $at + 1)
				return 0
			case '--*'
				if __tonnage_takes $words[2] $words[$at]
					set at (math $at + 1)
				end
			case '*'
				if contains -- $words[2] $__tonnage_programs
					echo $at
					return 0
				end
		end
		set at (math $at + 1)
	end
	return 1
end

# True behind the command $argv[1], before its program; without one, where the command itself is due.
function __tonnage_at
	set -l words (commandline -opc)
	if not set -q argv[1]
		test (count $words) -eq 1
	else
		test "$words[2]" = $argv[1]; and not __tonnage_program_at >/dev/null
	end
end

# True where a program's words are completed: behind --, and where a word without dashes begins it.
function __tonnage_in_program
	set -l words (commandline -opc)
	__tonnage_program_at >/dev/null; and return 0
	contains -- "$words[2]" $__tonnage_programs; and not string match -q -- '-*' (commandline -ct)
	and not __tonnage_takes $words[2] $words[-1]
end

function __tonnage_complete_program
	set -l words (commandline -opc)
	set -l at (__tonnage_program_at)
	set -q at[1]; or set at (math (count $words) + 1)
	complete -C (string join ' ' -- (string escape -- $words[$at..-1]) (commandline -ct))
end

complete -c tonnage -f
complete -c tonnage -n __tonnage_at -l help -d 'what it does'
complete -c tonnage -n __tonnage_at -l version -d 'the version'
complete -c tonnage -n __tonnage_in_program -a '(__tonnage_complete_program)'
