/*
 * Runs a fuzz target over files, or all files of folders, without a fuzzer: each as it is, cut
 * short at many places, and with single bytes changed. Every input lies in memory of exactly its
 * size, so that a sanitizer sees a read past its end. The last name printed is the input that
 * failed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define MOST_CUTS 200
#define MOST_CHANGES 400

static void run_copy(const uint8_t *bytes, size_t len, size_t changed, uint8_t flip)
{
	uint8_t *copy = malloc(len ? len : 1);

	if (!copy)
		abort();
	memcpy(copy, bytes, len);
	if (flip)
		copy[changed] ^= flip;
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static void run_variants(const uint8_t *bytes, size_t len)
{
	static const uint8_t flips[] = {0xff, 0x80, 0x01};
	size_t step;

	run_copy(bytes, len, 0, 0);
	step = len / MOST_CUTS + 1;
	for (size_t cut = 0; cut < len; cut += step)
		run_copy(bytes, cut, 0, 0);
	step = len / MOST_CHANGES + 1;
	for (size_t at = 0, n = 0; at < len; at += step, n++)
		run_copy(bytes, len, at, flips[n % sizeof(flips)]);
}

static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = NULL;
	struct stat st;
	int rc = -1;

	if (!file || fstat(fileno(file), &st) != 0)
		goto out;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes || fread(bytes, 1, (size_t)st.st_size, file) != (size_t)st.st_size)
		goto out;
	printf("%s\n", path);
	fflush(stdout);
	run_variants(bytes, (size_t)st.st_size);
	rc = 0;
out:
	if (rc != 0)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	free(bytes);
	if (file)
		fclose(file);
	return rc;
}

static int run_folder(const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort), rc = 0;

	if (count < 0)
		return run_file(path);
	for (int i = 0; i < count; i++) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.' && run_file(file) != 0)
			rc = -1;
		free(entries[i]);
	}
	free(entries);
	return rc;
}

int main(int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc; i++)
		if (run_folder(argv[i]) != 0)
			status = 1;
	return status;
}
