
# What follows an option: the words of its row in the table.
_tonnage_value()
{
	local words=${1//,/ } cur=$2 head=''
	if [[ $words == *FILES* ]]; then
		compopt -o default
		return
	fi
	words=${words/CARDS/$_tonnage_cards}
	if [[ $words == *CHANGES* ]]; then
		compopt -o nospace
		words=$_tonnage_changes
	elif [[ $words == *LIST* ]]; then # what stands behind the last comma
		[[ $cur != *,* ]] || head=${cur%,*},
		words=${words/LIST/}
	fi
	COMPREPLY=($(compgen -P "$head" -W "$words" -- "${cur#"$head"}"))
}

# The program's own words, from the index $1 on.
_tonnage_program()
{
	if ((COMP_CWORD == $1)); then
		compopt -o filenames
		COMPREPLY=($(compgen -c -- "$2") $(compgen -f -- "$2"))
	elif declare -F _command_offset >/dev/null; then # of bash-completion
		_command_offset "$1"
	else
		compopt -o default
	fi
}

_tonnage()
{
	local IFS=$' \t\n' cur=${COMP_WORDS[COMP_CWORD]} table row word wanted='' i
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "$(_tonnage_table '') --help --version" -- "$cur"))
		return
	fi
	table=$(_tonnage_table "${COMP_WORDS[1]}")
	for ((i = 2; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $word == = && -z $wanted ]]; then # readline splits name=value in three; here the name was no option
			i=$((i + 1))
		elif [[ $word == = ]]; then
			continue
		elif [[ -n $wanted ]]; then
			wanted=''
		elif [[ $word == -- ]]; then
			_tonnage_program "$((i + 1))" "$cur"
			return
		elif [[ $word == --* ]]; then
			for row in $table; do
				[[ $row != "$word"=* ]] || wanted=,${row#*=}
			done
		elif [[ $table == PROGRAM* ]]; then
			_tonnage_program "$i" "$cur"
			return
		fi
	done
	((i == COMP_CWORD)) || return
	[[ $cur != = ]] || cur=''
	if [[ -n $wanted ]]; then
		_tonnage_value "$wanted" "$cur"
	elif [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$(for row in $table; do [[ $row != --* ]] || echo "${row%%[=?]*}"; done)" -- "$cur"))
	else
		case ${table%% *} in
			PROGRAM) _tonnage_program "$COMP_CWORD" "$cur" ;;
			SHELLS) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")) ;;
			FILES | CARDS) _tonnage_value "${table%% *}" "$cur" ;;
		esac
	fi
}

complete -F _tonnage tonnage
