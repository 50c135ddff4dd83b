# shellcheck shell=bash disable=SC2034
# What the scripts of tests/cli start with.

# skip REASON: this machine cannot show it.
skip() {
	echo "$*"
	exit 77
}

# fails COMMAND...: must not succeed; prints the exit status.
fails() {
	local status=0
	"$@" || status=$?
	echo "exit status $status"
	[ $status != 0 ]
}

# fixture NAME: the path of a recording of the shared fixtures.
fixture() {
	local path=$PYPERF_FIXTURES/perf-data/$1
	[ -r "$path" ] || skip "no recordings at PYPERF_FIXTURES"
	ln -sf "$path" "$1"
}

unset PYTHONPATH PYTHONHOME PYTHONPERFSUPPORT
