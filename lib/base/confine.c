#include "base/confine.h"

#include "base/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (1ull << (cap))

static const uint64_t recording_takes = BIT(PRIVILEGE_PERFMON) | BIT(PRIVILEGE_BPF);

static bool get_permitted(uint64_t *permitted)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	*permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	return true;
}

/* Permitted and effective; nothing is inheritable, and so nothing ambient. */
static bool set_capabilities(uint64_t caps)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{.effective = (uint32_t)caps, .permitted = (uint32_t)caps},
		{.effective = (uint32_t)(caps >> 32), .permitted = (uint32_t)(caps >> 32)},
	};

	return syscall(SYS_capset, &header, data) == 0;
}

int confine(bool recording, struct err *err)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	uint64_t permitted;

	/* The kernel sets it where exec gave more than the user has. */
	if (!getauxval(AT_SECURE))
		return 0;
	if (prctl(PR_SET_KEEPCAPS, 1L, 0L, 0L, 0L) < 0 || setresgid(gid, gid, gid) < 0 ||
	    setresuid(uid, uid, uid) < 0 || !get_permitted(&permitted) ||
	    !set_capabilities(recording ? permitted & recording_takes : 0) ||
	    prctl(PR_SET_KEEPCAPS, 0L, 0L, 0L, 0L) < 0)
		return err_sys(err, errno, "cannot give up what exec has granted");
	/* Whatever the kernel's rules may be: there is no way back. */
	if (uid && (setuid(0) == 0 || geteuid() != uid || getegid() != gid))
		return err_set(err, ERR_FAILED, "cannot give up what exec has granted");
	return 0;
}
