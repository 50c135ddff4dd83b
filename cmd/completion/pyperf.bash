# Completion of pyperf for bash. tests/cli/check-docs compares the options here with those that
# `pyperf help COMMAND` lists.

_pyperf_view='-i --input -e --event -c --comm --pid --tid -d --dso --phase --time --files --modules --exclude --by-pmu --native -q --quiet -v --verbose -h --help'

_pyperf_options() { # COMMAND
	case $1 in
	record)
		echo "-p --pid -t --tid -a --all-cpus -C --cpu -u --uid -G --cgroup -i --no-inherit --per-thread --duration -e --event --no-metrics -F --freq -c --count -o --output -g --call-graph --python -m --mmap-pages" \
			"-z --compression-level -D --delay --control -q --quiet -v --verbose -h --help"
		;;
	report)
		echo "-s --sort --children --no-children --percent-limit -k --kind -n --show-nr-samples" \
			"--metrics --memory --reduced --json --csv --html --stdio --tui --inline --no-inline $_pyperf_view"
		;;
	annotate) echo "--metrics --memory --bytecode --callers --callees --reduced --json --csv --stdio --tui $_pyperf_view" ;;
	view) echo "--reduced --port --no-browser --inline --no-inline $_pyperf_view" ;;
	script) echo "--inline --no-inline $_pyperf_view" ;;
	export) echo "-f --format -o --output --weight --min-duration --merge --offset --inline --no-inline $_pyperf_view" ;;
	diff) echo "--fail-if -s --sort --percent-limit -e --event -c --comm -d --dso --files --modules --exclude -q --quiet -v --verbose -h --help" ;;
	stat)
		echo "-e --event -r --repeat -I --interval --per-thread --by-function -p --pid -t --tid -a --all-cpus -C --cpu" \
			"-u --uid -G --cgroup -i --no-inherit --duration --no-metrics -o --output --json --csv -q --quiet -v --verbose -h --help"
		;;
	top)
		echo "-p --pid -t --tid -a --all-cpus -C --cpu -u --uid -G --cgroup -i --no-inherit --duration -e --event --no-metrics" \
			"-F --freq -c --count -d --delay --native --python -b --by -s --sort --all --stdio --json -n --iterations" \
			"--rows -q --quiet -v --verbose -h --help"
		;;
	list) echo "--json -h --help" ;;
	dump) echo "-p --pid --native --json -h --help" ;;
	doctor) echo "--json -h --help" ;;
	version | help) echo "-h --help" ;;
	esac
}

# The words of an option that takes one of a few; fails where it takes something else.
_pyperf_words() { # COMMAND OPTION
	case $1:$2 in
	record:--python | top:--python) echo "auto bpf stop trampoline off" ;;
	top:-b | top:--by) echo "function line thread" ;;
	top:-s | top:--sort) echo "self total name" ;;
	record:--call-graph) echo "auto dwarf fp lbr none" ;;
	record:-e | record:--event | stat:-e | stat:--event | top:-e | top:--event)
		echo "cycles instructions cache-references cache-misses branches branch-misses cpu-clock" \
			"task-clock page-faults context-switches"
		;;
	report:-s | report:--sort) echo "self total comm pid tid dso file kind origin function" ;;
	report:-k | report:--kind) echo "python native kernel" ;;
	report:--metrics | annotate:--metrics)
		echo "all none ipc mpki miss br-miss br-mpki l1-mpki l1-miss tlb-mpki stalled ghz kernel ns"
		;;
	export:-f | export:--format) pyperf export --format list 2>/dev/null | cut -d' ' -f1 ;;
	export:--weight) echo "samples period" ;;
	diff:-s | diff:--sort) echo "self total" ;;
	*:--native) echo "on off all" ;;
	*) return 1 ;;
	esac
}

_pyperf_words_of() { # WORDS: those that begin with the word at hand
	local word
	for word in $1; do
		[[ $word == "$2"* ]] && COMPREPLY+=("$word")
	done
}

_pyperf() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' i words
	COMPREPLY=()
	# `--option=value` comes as three words.
	if [[ $word == = ]]; then
		word=''
	elif [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ -z $command && ${COMP_WORDS[i]} != -* ]]; then
			command=${COMP_WORDS[i]}
		elif [[ $command == @(record|stat) && ${COMP_WORDS[i]} == -- ]]; then
			# The rest is the program's command line.
			if ((COMP_CWORD == i + 1)); then
				mapfile -t COMPREPLY < <(compgen -c -- "$word")
			else
				compopt -o default 2>/dev/null
			fi
			return
		fi
	done
	if [[ -z $command ]]; then
		_pyperf_words_of "record stat top report annotate view script export diff dump list doctor version help --help --version" "$word"
	elif words=$(_pyperf_words "$command" "$before"); then
		_pyperf_words_of "$words" "$word"
	elif [[ $word == -* ]]; then
		_pyperf_words_of "$(_pyperf_options "$command")" "$word"
	elif [[ $command == help ]]; then
		_pyperf_words_of "record stat top report annotate view script export diff dump list doctor version help" "$word"
	else
		compopt -o default 2>/dev/null
	fi
}

complete -F _pyperf pyperf
