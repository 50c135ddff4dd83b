/* The parts of the stop engine that need no process: its messages, and which frames go with which
 * sample. */
#include "record/mailbox.h"
#include "record/stops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct bytes text(const char *text)
{
	return bytes_of(text, strlen(text));
}

static const char *find(const struct stops *stops, uint32_t tid, uint64_t time)
{
	static char found[32];
	const struct stop_of_thread *stop = stops_find(stops, tid, time);
	struct bytes payload;

	if (!stop)
		return NULL;
	payload = stops_payload(stops, stop);
	memcpy(found, payload.at, bytes_left(&payload));
	found[bytes_left(&payload)] = '\0';
	return found;
}

static void test_first_stop_that_is_not_older(void **state)
{
	struct stops stops = {0};

	assert_null(find(&stops, 1, 5));
	assert_true(stops_add(&stops, 1, 10, text("a")));
	assert_true(stops_add(&stops, 2, 12, text("other")));
	assert_true(stops_add(&stops, 1, 20, text("b")));
	assert_true(stops_add(&stops, 1, 30, bytes_of("", 0)));
	assert_string_equal(find(&stops, 1, 5), "a");
	assert_string_equal(find(&stops, 1, 10), "a");
	assert_string_equal(find(&stops, 1, 11), "b");
	assert_string_equal(find(&stops, 1, 20), "b");
	/* Samples are asked for in the order of the rings, not of time. */
	assert_string_equal(find(&stops, 1, 7), "a");
	assert_string_equal(find(&stops, 1, 25), "");
	assert_null(find(&stops, 1, 31));
	assert_string_equal(find(&stops, 2, 12), "other");
	assert_null(find(&stops, 2, 13));
	assert_null(find(&stops, 3, 1));
	stops_fini(&stops);
}

static void test_forgotten_stops(void **state)
{
	struct stops stops = {0};

	stops_forget(&stops, 0);
	assert_true(stops_add(&stops, 1, 10, text("a")));
	assert_true(stops_add(&stops, 2, 11, text("b")));
	assert_true(stops_add(&stops, 1, 20, text("c")));
	stops_forget(&stops, 2);
	assert_string_equal(find(&stops, 1, 5), "c");
	assert_null(find(&stops, 2, 5));
	assert_true(stops_add(&stops, 2, 21, text("d")));
	assert_true(stops_add(&stops, 1, 22, text("e")));
	assert_string_equal(find(&stops, 1, 21), "e");
	assert_string_equal(find(&stops, 2, 5), "d");
	stops_forget(&stops, 3);
	assert_null(find(&stops, 1, 5));
	stops_fini(&stops);
}

static void test_messages_come_whole_and_in_order(void **state)
{
	struct mailbox box;
	unsigned char bytes[600];
	struct bytes body;
	uint32_t kind, sent = 0, got = 0;

	assert_int_equal(mailbox_open(&box, 4096, NULL), 0);
	assert_false(mailbox_next(&box, &kind, &body));
	/* Lengths that cross the end of the ring at every offset. */
	for (uint32_t round = 0; round < 19999; round++) {
		uint32_t len = round * 7 % sizeof(bytes);
		struct mailbox_part parts[] = {{&sent, sizeof(sent)}, {bytes, len}};

		memset(bytes, (int)sent, sizeof(bytes));
		if (mailbox_put(&box, round, parts, 2)) {
			sent++;
			if (round % 3)
				continue;
		}
		while (mailbox_next(&box, &kind, &body)) {
			assert_int_equal(bytes_left(&body), 4 + kind * 7 % sizeof(bytes));
			assert_int_equal(bytes_u32(&body), got);
			for (; bytes_left(&body);)
				assert_int_equal(bytes_u8(&body), (uint8_t)got);
			got++;
		}
	}
	assert_int_equal(got, sent);
	assert_true(sent > 15000);
	mailbox_close(&box);
}

static void test_room_ends(void **state)
{
	struct mailbox box;
	char bytes[1000] = "";
	const struct mailbox_part one = {bytes, sizeof(bytes)}, large = {bytes, 4000};
	struct bytes body;
	uint32_t kind;
	int fit = 0;

	assert_int_equal(mailbox_open(&box, 4096, NULL), 0);
	assert_false(mailbox_put(&box, 1, &large, 1));
	while (mailbox_put(&box, 1, &one, 1))
		fit++;
	assert_int_equal(fit, 4);
	assert_true(mailbox_pending(&box) > 4 * sizeof(bytes));
	assert_true(mailbox_next(&box, &kind, &body));
	/* The message may be in use until the next one is asked for. */
	assert_false(mailbox_put(&box, 1, &one, 1));
	assert_true(mailbox_next(&box, &kind, &body));
	assert_true(mailbox_put(&box, 1, &one, 1));
	mailbox_close(&box);
}

static void test_between_processes(void **state)
{
	struct mailbox box;
	struct bytes body;
	uint32_t kind, expected = 0;
	int status;
	pid_t pid;

	assert_int_equal(mailbox_open(&box, 4096, NULL), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (uint32_t i = 0; i < 5000; i++) {
			const struct mailbox_part part = {&i, sizeof(i)};

			while (!mailbox_put(&box, i, &part, 1))
				usleep(10);
		}
		_exit(0);
	}
	while (expected < 5000)
		if (mailbox_next(&box, &kind, &body)) {
			assert_int_equal(kind, expected);
			assert_int_equal(bytes_u32(&body), expected);
			expected++;
		} else {
			usleep(10);
		}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	mailbox_close(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_stop_that_is_not_older),
		cmocka_unit_test(test_forgotten_stops),
		cmocka_unit_test(test_messages_come_whole_and_in_order),
		cmocka_unit_test(test_room_ends),
		cmocka_unit_test(test_between_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
