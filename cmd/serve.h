#ifndef PYPERF_CMD_SERVE_H
#define PYPERF_CMD_SERVE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * A small HTTP server on 127.0.0.1, for `view`: one page and one file.
 *
 * The page's address holds a token that works once: who comes with it first gets a cookie, and only
 * that browser sees the page from then on, whatever the address shows up in. The file's address
 * stays valid, since viewers on other sites read it by script; they cannot guess it. A request that
 * names another host than this one (DNS rebinding) is refused.
 */
struct server;

struct serve {
	const char *page; /* HTML; stays the caller's, like the rest */
	size_t page_len;
	const char *file; /* path; NULL: none */
	uint16_t port;	  /* 0: any */
};

/* Serves from threads of its own until server_stop(). */
int server_start(struct server **server, const struct serve *serve, struct err *err);
void server_stop(struct server *server);
const char *server_page_url(const struct server *server);
const char *server_file_url(const struct server *server); /* NULL: there is no file */

#endif
