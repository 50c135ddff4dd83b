#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "all_views.h"
#include "base/io.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Damaged recordings, through everything that is made of them. Two real ones (a Python program of
 * 24 ms, plain and compressed) are cut and changed at many places. Whatever is done to them, the
 * result comes soon, is complete and says what is missing; what a sanitizer would say besides shows
 * in a build with one.
 */
#define SEEDS "tests/fuzz/corpus/fuzz_profile/"
#define CUTS 150
#define CHANGES 200
#define SECONDS 10 /* for one of them; SIGALRM ends the test */

struct outcome {
	bool loaded, told; /* told: of a loss, or of records that break their layout */
	uint64_t samples;
};

static struct strbuf read_seed(const char *name)
{
	struct strbuf seed = {0};
	char path[128];

	snprintf(path, sizeof(path), SEEDS "%s", name);
	assert_int_equal(io_read_file(path, &seed, 1 << 20, NULL), 0);
	return seed;
}

/* Loads the bytes and checks all that must hold whatever they are. */
static struct outcome show(const void *bytes, size_t len)
{
	int fd = memfd_create("damaged", MFD_CLOEXEC), rc;
	struct outcome outcome = {0};
	struct profile *profile = NULL;
	struct data_file *file;
	struct err err = {0};
	char path[64], *text, *json;
	size_t text_len, json_len;
	FILE *out = open_memstream(&text, &text_len), *out_json = open_memstream(&json, &json_len);

	assert_true(fd >= 0 && out && out_json);
	assert_int_equal(io_write_full(fd, bytes, len), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	alarm(SECONDS);
	rc = data_open(&file, path, &err);
	if (!rc) {
		rc = all_views_write(out, out_json, file, 2, &profile, &err);
		data_close(file);
	}
	alarm(0);
	fclose(out);
	fclose(out_json);
	if (rc && (profile || !err.text[0] || err.code == ERR_NOMEM))
		fail_msg("failed without reason: %s", err.text);
	if (json_len) {
		json_error_t error;
		json_t *report = json_loadb(json, json_len, JSON_REJECT_DUPLICATES, &error);

		if (!report)
			fail_msg("broken JSON: %s", error.text);
		json_decref(report);
	}
	if (profile) {
		const struct profile_summary *summary = profile_summary(profile);

		outcome.loaded = true;
		outcome.samples = summary->samples;
		outcome.told = summary->loss || summary->malformed;
	}
	profile_free(profile);
	free(text);
	free(json);
	close(fd);
	return outcome;
}

static void check_cuts(const char *name)
{
	struct strbuf seed = read_seed(name);
	struct outcome whole = show(seed.buf, seed.len);

	assert_true(whole.loaded && !whole.told && whole.samples > 0);
	for (size_t i = 0; i < CUTS; i++) {
		size_t len = seed.len * i / CUTS;
		struct outcome cut = show(seed.buf, len);

		if ((cut.loaded && !cut.told) || cut.samples > whole.samples)
			fail_msg("%s cut to %zu bytes: %s", name, len,
				 cut.told ? "more samples than before" : "nothing is said");
	}
	strbuf_fini(&seed);
}

static void check_changes(const char *name)
{
	struct strbuf seed = read_seed(name);

	for (size_t i = 0; i < CHANGES; i++) {
		size_t at = seed.len * i / CHANGES;
		char flip = (char)(i % 9 == 8 ? 0xff : 1 << i % 9);

		seed.buf[at] ^= flip;
		show(seed.buf, seed.len);
		seed.buf[at] ^= flip;
	}
	strbuf_fini(&seed);
}

static void cut_recordings_say_so(void **state)
{
	check_cuts("plain");
	check_cuts("zstd");
}

static void changed_bits_do_no_harm(void **state)
{
	check_changes("plain");
	check_changes("zstd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_recordings_say_so),
		cmocka_unit_test(changed_bits_do_no_harm),
	};

	/* Copies of objects that perf keeps at home are none of this. */
	setenv("HOME", "/nonexistent", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
