#ifndef PYPERF_CGROUP_H
#define PYPERF_CGROUP_H

#include "base/err.h"
#include "base/strbuf.h"

/*
 * Control groups, in the hierarchy that the kernel's perf_event controller is part of: the one of
 * version 1 that is mounted with it, else version 2.
 *
 * A name is a path in that hierarchy ("/system.slice/nginx.service", with or without its mount
 * point), the last part of one, or the id of a container or the beginning of it, eight characters
 * at least.
 */

/* Returns an fd of the group's folder and appends its path. */
int cgroup_open(const char *name, struct strbuf *path, struct err *err);

/* As cgroup_open(), in the hierarchy whose root is the folder `top`. */
int cgroup_open_below(const char *top, const char *name, struct strbuf *path, struct err *err);

#endif
