#include "cmd/serve.h"

#include <errno.h>
#include <stdlib.h>

#ifdef HAVE_MICROHTTPD

#include "base/library.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	__typeof__(MHD_start_daemon) *start_daemon;
	__typeof__(MHD_stop_daemon) *stop_daemon;
	__typeof__(MHD_get_daemon_info) *get_daemon_info;
	__typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
	__typeof__(MHD_create_response_from_fd64) *create_response_from_fd64;
	__typeof__(MHD_add_response_header) *add_response_header;
	__typeof__(MHD_queue_response) *queue_response;
	__typeof__(MHD_destroy_response) *destroy_response;
	__typeof__(MHD_lookup_connection_value) *lookup_connection_value;
} mhd;

static const struct library_call calls[] = {
	{"MHD_start_daemon", (void **)&mhd.start_daemon},
	{"MHD_stop_daemon", (void **)&mhd.stop_daemon},
	{"MHD_get_daemon_info", (void **)&mhd.get_daemon_info},
	{"MHD_create_response_from_buffer", (void **)&mhd.create_response_from_buffer},
	{"MHD_create_response_from_fd64", (void **)&mhd.create_response_from_fd64},
	{"MHD_add_response_header", (void **)&mhd.add_response_header},
	{"MHD_queue_response", (void **)&mhd.queue_response},
	{"MHD_destroy_response", (void **)&mhd.destroy_response},
	{"MHD_lookup_connection_value", (void **)&mhd.lookup_connection_value},
};

#define SECRET_LEN 32 /* hexadecimal digits */
#define COOKIE "pyperf"

struct server {
	struct MHD_Daemon *daemon;
	struct serve serve;
	char token[SECRET_LEN + 1], session[SECRET_LEN + 1], file_key[SECRET_LEN + 1];
	char host[2][32]; /* "127.0.0.1:PORT", "localhost:PORT" */
	char page_url[96], file_url[128];
	pthread_mutex_t lock;
	bool token_used;
};

struct header {
	const char *name, *value;
};

static const struct header always[] = {
	{"Cache-Control", "no-store"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"X-Frame-Options", "DENY"},
	{0},
};

static int make_secret(char *secret, struct err *err)
{
	uint8_t random[SECRET_LEN / 2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_sys(err, errno, "cannot get random numbers");
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(secret + 2 * i, 3, "%02x", random[i]);
	return 0;
}

/* Takes as long wherever they differ. */
static bool is_secret(const char *given, const char *secret)
{
	uint8_t differ = 0;

	if (!given || strlen(given) != SECRET_LEN)
		return false;
	for (size_t i = 0; i < SECRET_LEN; i++)
		differ |= (uint8_t)(given[i] ^ secret[i]);
	return !differ;
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int status,
			      struct MHD_Response *response, const struct header *headers)
{
	enum MHD_Result rc = MHD_YES;

	if (!response)
		return MHD_NO;
	for (const struct header *h = always; h->name && rc; h++)
		rc = mhd.add_response_header(response, h->name, h->value);
	for (const struct header *h = headers; h && h->name && rc; h++)
		rc = mhd.add_response_header(response, h->name, h->value);
	if (rc)
		rc = mhd.queue_response(connection, status, response);
	mhd.destroy_response(response);
	return rc;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned int status,
			      const char *why)
{
	static const struct header plain[] = {{"Content-Type", "text/plain; charset=utf-8"}, {0}};

	return answer(
		connection, status,
		mhd.create_response_from_buffer(strlen(why), (void *)why, MHD_RESPMEM_PERSISTENT),
		plain);
}

static enum MHD_Result send_page(struct server *server, struct MHD_Connection *connection)
{
	static const struct header html[] = {{"Content-Type", "text/html; charset=utf-8"}, {0}};

	return answer(connection, MHD_HTTP_OK,
		      mhd.create_response_from_buffer(server->serve.page_len,
						      (void *)server->serve.page,
						      MHD_RESPMEM_PERSISTENT),
		      html);
}

/* Any site's script may read it that has been told the address. */
static enum MHD_Result send_file(struct server *server, struct MHD_Connection *connection)
{
	static const struct header raw[] = {{"Content-Type", "application/octet-stream"},
					    {"Access-Control-Allow-Origin", "*"},
					    {0}};
	int fd = open(server->serve.file, O_RDONLY | O_CLOEXEC);
	struct MHD_Response *response;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return refuse(connection, MHD_HTTP_NOT_FOUND, "The recording is gone.\n");
	}
	response = mhd.create_response_from_fd64((uint64_t)st.st_size, fd);
	if (!response)
		close(fd);
	return answer(connection, MHD_HTTP_OK, response, raw);
}

/* The first who comes with the token is let in, and sent on to an address without it. */
static enum MHD_Result let_in(struct server *server, struct MHD_Connection *connection,
			      bool only_asks)
{
	char cookie[128];
	const struct header headers[] = {{"Location", "/"}, {"Set-Cookie", cookie}, {0}};
	bool first;

	pthread_mutex_lock(&server->lock);
	first = !server->token_used;
	if (!only_asks)
		server->token_used = true;
	pthread_mutex_unlock(&server->lock);
	if (!first)
		return refuse(connection, MHD_HTTP_FORBIDDEN,
			      "This address worked once and is used up. The browser that opened it "
			      "still has the page;\nfor another one run pyperf view again.\n");
	snprintf(cookie, sizeof(cookie), COOKIE "=%s; HttpOnly; SameSite=Strict; Path=/",
		 server->session);
	return answer(connection, MHD_HTTP_SEE_OTHER,
		      mhd.create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT),
		      only_asks ? NULL : headers);
}

static bool is_our_host(const struct server *server, const char *host)
{
	return host && (strcmp(host, server->host[0]) == 0 || strcmp(host, server->host[1]) == 0);
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **state)
{
	struct server *server = ctx;
	bool get = strcmp(method, MHD_HTTP_METHOD_GET) == 0;
	const char *session = mhd.lookup_connection_value(connection, MHD_COOKIE_KIND, COOKIE);
	size_t len = strlen(url);
	char first[SECRET_LEN + 1] = "";

	if (!get && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
	if (!is_our_host(server, mhd.lookup_connection_value(connection, MHD_HEADER_KIND,
							     MHD_HTTP_HEADER_HOST)))
		return refuse(connection, MHD_HTTP_FORBIDDEN, "Another host was asked for.\n");
	if (strcmp(url, "/") == 0 && is_secret(session, server->session))
		return send_page(server, connection);
	if (len > SECRET_LEN + 1 && url[SECRET_LEN + 1] == '/')
		memcpy(first, url + 1, SECRET_LEN);
	if (len == SECRET_LEN + 2 && is_secret(first, server->token))
		return let_in(server, connection, !get);
	if (server->serve.file && is_secret(first, server->file_key) &&
	    strcmp(url + SECRET_LEN + 1, "/perf.data") == 0)
		return send_file(server, connection);
	return refuse(connection, MHD_HTTP_FORBIDDEN,
		      "Open the whole address that pyperf view printed.\n");
}

/* MHD tells what is wrong on stderr, unless it is told otherwise. */
static void keep_quiet(void *ctx, const char *format, va_list arguments)
{
}

static int start(struct server *server, struct err *err)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(server->serve.port),
		.sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
	};
	const union MHD_DaemonInfo *info;

	errno = 0;
	server->daemon = mhd.start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, NULL,
					  NULL, handle, server, MHD_OPTION_EXTERNAL_LOGGER,
					  keep_quiet, NULL, MHD_OPTION_SOCK_ADDR, &address,
					  MHD_OPTION_CONNECTION_LIMIT, 64u,
					  MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_END);
	if (!server->daemon) {
		err_sys(err, errno ? errno : EIO, "cannot serve on 127.0.0.1 port %u",
			server->serve.port);
		err_hint(err, "Without --port any free one is taken.");
		return err ? (int)err->code : ERR_SYSTEM;
	}
	info = mhd.get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
	snprintf(server->host[0], sizeof(server->host[0]), "127.0.0.1:%u", info->port);
	snprintf(server->host[1], sizeof(server->host[1]), "localhost:%u", info->port);
	snprintf(server->page_url, sizeof(server->page_url), "http://%s/%s/", server->host[0],
		 server->token);
	snprintf(server->file_url, sizeof(server->file_url), "http://%s/%s/perf.data",
		 server->host[0], server->file_key);
	return 0;
}

int server_start(struct server **out, const struct serve *serve, struct err *err)
{
	struct server *server = calloc(1, sizeof(*server));
	int rc = server ? 0 : err_nomem(err);

	*out = NULL;
	if (rc)
		return rc;
	server->serve = *serve;
	pthread_mutex_init(&server->lock, NULL);
	rc = library_load(MICROHTTPD_FILE, calls, sizeof(calls) / sizeof(calls[0]), err);
	if (!rc)
		rc = make_secret(server->token, err);
	if (!rc)
		rc = make_secret(server->session, err);
	if (!rc)
		rc = make_secret(server->file_key, err);
	if (!rc)
		rc = start(server, err);
	if (rc)
		server_stop(server);
	else
		*out = server;
	return rc;
}

void server_stop(struct server *server)
{
	if (!server)
		return;
	if (server->daemon)
		mhd.stop_daemon(server->daemon);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

const char *server_page_url(const struct server *server)
{
	return server->page_url;
}

const char *server_file_url(const struct server *server)
{
	return server->serve.file ? server->file_url : NULL;
}

#else

int server_start(struct server **out, const struct serve *serve, struct err *err)
{
	*out = NULL;
	err_set(err, ERR_UNSUPPORTED, "this pyperf was built without a web server");
	err_hint(err, "Write the page to a file instead: pyperf report --html FILE\n"
		      "or build pyperf where libmicrohttpd-dev is installed.");
	return ERR_UNSUPPORTED;
}

void server_stop(struct server *server)
{
}

const char *server_page_url(const struct server *server)
{
	return "";
}

const char *server_file_url(const struct server *server)
{
	return NULL;
}

#endif
