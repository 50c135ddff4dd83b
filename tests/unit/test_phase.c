#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perfmap/source.h"
#include "profile/phase.h"
#include "profile/spans.h"
#include "record/control.h"
#include "record/phases.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Orders through a pipe, the section that they end in, and the times that it selects. */

struct wire {
	struct control *control;
	struct control_scope scope;
	struct phases phases;
	int orders, answers;
};

static struct wire wire_open(void)
{
	struct wire wire = {0};
	int orders[2], answers[2];
	char where[64];

	assert_return_code(pipe(orders), 0);
	assert_return_code(pipe(answers), 0);
	snprintf(where, sizeof(where), "fd:%d,%d", orders[0], answers[1]);
	assert_int_equal(control_open(&wire.control, where, NULL), 0);
	assert_int_equal(control_fd(wire.control), orders[0]);
	wire.orders = orders[1];
	wire.answers = answers[0];
	fcntl(wire.answers, F_SETFL, O_NONBLOCK);
	wire.scope.sources = sources_new();
	assert_non_null(wire.scope.sources);
	return wire;
}

static void wire_close(struct wire *wire)
{
	control_free(wire->control);
	phases_fini(&wire->phases);
	sources_free(wire->scope.sources);
	close(wire->orders);
	close(wire->answers);
}

/* What is answered. */
static const char *say(struct wire *wire, const char *text)
{
	static char answer[256];
	ssize_t n;

	assert_int_equal(write(wire->orders, text, strlen(text)), strlen(text));
	wire->scope.phases = &wire->phases;
	assert_int_equal(control_read(wire->control, &wire->scope, NULL), 0);
	n = read(wire->answers, answer, sizeof(answer) - 1);
	answer[n > 0 ? n : 0] = '\0';
	return answer;
}

static void orders_are_answered(void **state)
{
	struct wire wire = wire_open();

	assert_string_equal(say(&wire, "ping\n"), "ack\n");
	assert_string_equal(say(&wire, "ping\nping\n"), "ack\nack\n");
	assert_string_equal(say(&wire, "pi"), "");
	assert_string_equal(say(&wire, "ng\n"), "ack\n");
	assert_string_equal(say(&wire, "pong\n\nping now\nping\n"), "nak\nnak\nack\n");
	assert_string_equal(say(&wire, "begin\nbegin @1,2 x\nbegin @x\n"), "nak\nnak\nnak\n");
	assert_false(wire.scope.stop);
	assert_string_equal(say(&wire, "stop\n"), "ack\n");
	assert_true(wire.scope.stop);
	assert_int_equal(wire.phases.list.len, 0);
	wire_close(&wire);
}

static void long_lines_are_skipped(void **state)
{
	struct wire wire = wire_open();
	char *line = malloc(5001);

	memset(line, 'x', 5000);
	line[5000] = '\0';
	assert_string_equal(say(&wire, line), "");
	assert_string_equal(say(&wire, "ping\nping\n"), "ack\n");
	free(line);
	wire_close(&wire);
}

static void the_other_side_closes(void **state)
{
	struct wire wire = wire_open();

	assert_string_equal(say(&wire, "mark a\npin"), "");
	close(wire.orders);
	assert_int_equal(control_read(wire.control, &wire.scope, NULL), 0);
	assert_int_equal(control_fd(wire.control), -1);
	assert_int_equal(control_read(wire.control, &wire.scope, NULL), 0);
	wire.orders = -1;
	wire_close(&wire);
}

static void places_that_are_none(void **state)
{
	static const char *const places[] = {
		"", "fifo", "fd:", "fd:x", "fd:99999", "fifo:/nowhere", "fifo:/dev/null", "pipe:3"};
	struct control *control;
	struct err err;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		assert_true(control_open(&control, places[i], &err) < 0);
		assert_non_null(strstr(err.text, "--control"));
	}
}

static void sources_of_the_owner(void **state)
{
	char path[] = "/tmp/pyperf-test-XXXXXX", line[256];
	struct wire wire = wire_open();
	const struct source *source;
	int fd = mkstemp(path);

	assert_return_code(fd, 0);
	assert_int_equal(write(fd, "x = 1\n", 6), 6);
	snprintf(line, sizeof(line), "source %s\t<cell 1>\n", path);
	assert_string_equal(say(&wire, line), "ack\n");
	source = sources_find(wire.scope.sources, "<cell 1>");
	assert_non_null(source);
	assert_string_equal(source->text, "x = 1\n");
	assert_string_equal(source->path, "");
	assert_string_equal(say(&wire, "source nothing\nsource /nowhere\t<cell 2>\n"),
			    "ack\nack\n");
	assert_null(sources_find(wire.scope.sources, "<cell 2>"));
	if (getuid() == 0 && fchown(fd, 65534, 65534) == 0) {
		snprintf(line, sizeof(line), "source %s\t<cell 3>\n", path);
		say(&wire, line);
		assert_null(sources_find(wire.scope.sources, "<cell 3>"));
	}
	close(fd);
	unlink(path);
	wire_close(&wire);
}

static void take_phases(struct wire *wire)
{
	assert_string_equal(say(wire, "begin @100,7,8 load data\n"
				      "begin @110,7,9 load data\n"
				      "begin @120,7,8 inner\n"
				      "end @130,7,8 load data\n"
				      "end @140,7,8 inner\n"
				      "end @150,7,8 load data\n"
				      "mark @125,7,8 now\n"
				      "begin @200,7,8 load data\nend @190,7,8 load data\n"),
			    "");
}

static void phases_round_trip(void **state)
{
	static const struct {
		uint64_t begin, end;
		uint32_t tid;
		const char *name;
	} expected[] = {
		{100, 130, 8, "load data"}, {110, PHASE_OPEN, 9, "load data"},
		{120, 140, 8, "inner"},	    {125, 125, 8, "now"},
		{200, 200, 8, "load data"},
	};
	struct wire wire = wire_open();
	struct profile *profile = profile_new();
	struct strbuf section = {0};

	take_phases(&wire);
	assert_int_equal(wire.phases.refused, 1);
	assert_int_equal(phases_encode(&wire.phases, &section), 0);
	assert_int_equal(phases_read(profile, bytes_of(section.buf, section.len), NULL), 0);
	assert_int_equal(profile_phase_count(profile), 5);
	for (size_t i = 0; i < 5; i++) {
		const struct profile_phase *phase = profile_phase(profile, i);

		assert_int_equal(phase->begin, expected[i].begin);
		assert_true(phase->end == expected[i].end);
		assert_int_equal(phase->pid, 7);
		assert_int_equal(phase->tid, expected[i].tid);
		assert_string_equal(profile_text(profile, phase->name), expected[i].name);
	}
	profile_free(profile);
	/* Cut anywhere, and with each byte changed. */
	for (size_t len = 0; len < section.len; len++) {
		profile = profile_new();
		assert_int_equal(phases_read(profile, bytes_of(section.buf, len), NULL),
				 ERR_CORRUPT);
		profile_free(profile);
		profile = profile_new();
		section.buf[len] ^= 0x81;
		phases_read(profile, bytes_of(section.buf, section.len), NULL);
		section.buf[len] ^= 0x81;
		profile_free(profile);
	}
	strbuf_fini(&section);
	wire_close(&wire);
}

static void phases_are_bounded(void **state)
{
	struct phases phases = {0};
	char name[PHASE_NAME_MAX + 2];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(phases_begin(&phases, name, 1, 1, 1, NULL), 0);
	assert_int_equal(phases_mark(&phases, "", 1, 1, 1, NULL), 0);
	assert_int_equal(phases.refused, 2);
	for (unsigned int i = 0; i < PHASES_OPEN_MAX + 10; i++)
		assert_int_equal(phases_begin(&phases, "x", 1, 1, i, NULL), 0);
	assert_int_equal(phases.list.len, PHASES_OPEN_MAX);
	assert_int_equal(phases.refused, 12);
	phases_fini(&phases);
}

static void selection(void **state)
{
	struct wire wire = wire_open();
	struct profile *profile = profile_new();
	struct strbuf section = {0};
	struct spans spans = {0};
	struct err err;

	take_phases(&wire);
	phases_encode(&wire.phases, &section);
	phases_read(profile, bytes_of(section.buf, section.len), NULL);
	assert_int_equal(phases_select(profile, "inner", &spans, NULL), 0);
	assert_false(spans_contain(&spans, 119));
	assert_true(spans_contain(&spans, 120));
	assert_true(spans_contain(&spans, 140));
	assert_false(spans_contain(&spans, 141));
	spans_fini(&spans);
	assert_int_equal(phases_select(profile, "load data", &spans, NULL), 0);
	assert_false(spans_contain(&spans, 99));
	assert_true(spans_contain(&spans, UINT64_MAX));
	spans_fini(&spans);
	assert_int_equal(phases_select(profile, "load", &spans, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.hint, "load data, inner, now"));
	strbuf_fini(&section);
	profile_free(profile);
	wire_close(&wire);
}

static void spans_are_joined(void **state)
{
	struct spans spans = {0};

	assert_false(spans_contain(&spans, 5));
	spans_add(&spans, 50, 60);
	spans_add(&spans, 10, 20);
	spans_add(&spans, 15, 18);
	spans_add(&spans, 20, 30);
	spans_join(&spans);
	assert_int_equal(spans.list.len, 2);
	for (uint64_t time = 0; time < 70; time++)
		assert_int_equal(spans_contain(&spans, time),
				 (time >= 10 && time <= 30) || (time >= 50 && time <= 60));
	spans_fini(&spans);
}

static void times_as_text(void **state)
{
	static const struct {
		const char *text;
		bool fine;
		uint64_t begin, end;
	} cases[] = {
		{"1.5,2", true, 1500000000, 2000000000},
		{",0.000000001", true, 0, 1},
		{"3,", true, 3000000000, UINT64_MAX},
		{"0%-10%", true, 1000, 1100},
		{"12.5%-100%", true, 1125, 2000},
		{"2,1", false, 0, 0},
		{"1", false, 0, 0},
		{"", false, 0, 0},
		{"x,y", false, 0, 0},
		{"50%", false, 0, 0},
		{"50%-101%", false, 0, 0},
		{"60%-50%", false, 0, 0},
		{"99999999999999999999,", false, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spans spans = {0};
		int rc = spans_parse(&spans, cases[i].text, 1000, 2000, NULL);

		assert_int_equal(rc, cases[i].fine ? 0 : ERR_USAGE);
		if (cases[i].fine) {
			assert_true(spans.list.items[0].begin == cases[i].begin);
			assert_true(spans.list.items[0].end == cases[i].end);
		}
		spans_fini(&spans);
	}
	assert_int_equal(spans_parse(&(struct spans){0}, "1%-2%", 0, 0, NULL), ERR_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_are_answered),	 cmocka_unit_test(long_lines_are_skipped),
		cmocka_unit_test(the_other_side_closes), cmocka_unit_test(places_that_are_none),
		cmocka_unit_test(sources_of_the_owner),	 cmocka_unit_test(phases_round_trip),
		cmocka_unit_test(phases_are_bounded),	 cmocka_unit_test(selection),
		cmocka_unit_test(spans_are_joined),	 cmocka_unit_test(times_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
