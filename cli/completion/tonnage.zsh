
_tonnage()
{
	local state line
	_arguments -C '(- : *)--help[what it does]' '(- : *)--version[the version]' '1:command:->command' '*::argument:->argument'
	case $state in
		command) _describe command _tonnage_commands ;;
		argument) _tonnage_command $words[1] ;;
	esac
}

_tonnage "$@"
