/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests: one of many roads to change a file without libc's functions. roads ROAD FOLDER; without a road it lists
 * them. The folder is one that make_tree (test_overlay.py) has made. Exits 0 when the kernel let it happen, 1 when not.
 * Where a road has several steps, each is tried with what the one before left.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[4096];
static const char *folder;

/* Some calls take two names at once. */
static const char *
at(const char *file)
{
	static char names[4][4096];
	static int next;
	char *own = names[next++ % 4];

	snprintf(own, sizeof(names[0]), "%s/%s", folder, file);
	return own;
}

#define OLD at("old")
#define NEW at("made")
#define CALL(number, ...) syscall(number, __VA_ARGS__)
#define HERE ((long)AT_FDCWD)

static long
open_read(void)
{
	return CALL(SYS_openat, HERE, OLD, (long)O_RDONLY, 0L);
}

static long
open_folder(void)
{
	return CALL(SYS_openat, HERE, folder, (long)O_RDONLY | O_DIRECTORY, 0L);
}

static long
open_path(void)
{
	return CALL(SYS_openat, HERE, OLD, (long)O_PATH, 0L);
}

static const char *
link_of(long fd)
{
	snprintf(name, sizeof(name), "/proc/self/fd/%ld", fd);
	return name;
}

static long
write_to(long fd)
{
	return fd < 0 ? fd : CALL(SYS_write, fd, "harm", 4L);
}

static struct timespec precise[2] = { { 1, 0 }, { 2, 0 } };
static struct timeval coarse[2] = { { 1, 0 }, { 2, 0 } };
static long seconds[2] = { 1, 2 };
static int flags = FS_NOATIME_FL;
static struct fsxattr extended = { .fsx_xflags = FS_XFLAG_NODUMP };
static struct sockaddr_un address = { .sun_family = AF_UNIX };

static long
bind_socket(void)
{
	long fd = CALL(SYS_socket, (long)AF_UNIX, (long)SOCK_STREAM, 0L);
	if (chdir(folder))
		return -1;
	strcpy(address.sun_path, "socket");
	return CALL(SYS_bind, fd, &address, (long)sizeof(address));
}

static long
by_proc_mem(void) /* through the parent's memory, which is outside of the walls when the test says so */
{
	const char *parent = getenv("OUTSIDER");
	long pid = parent ? atol(parent) : 1;
	snprintf(name, sizeof(name), "/proc/%ld/mem", pid);
	return CALL(SYS_openat, HERE, name, (long)O_RDWR, 0L);
}

static long
by_ptrace(void)
{
	const char *parent = getenv("OUTSIDER");
	return CALL(SYS_ptrace, (long)PTRACE_SEIZE, parent ? atol(parent) : 1L, 0L, 0L);
}

static long
by_outsiders_root(const char *what)
{
	const char *parent = getenv("OUTSIDER");
	static char path[8192];
	snprintf(path, sizeof(path), "/proc/%s/%s%s/old", parent ? parent : "1", what, folder);
	return write_to(CALL(SYS_openat, HERE, path, (long)O_WRONLY, 0L));
}

static long
by_pidfd(void)
{
	const char *parent = getenv("OUTSIDER");
	long fd = CALL(SYS_pidfd_open, parent ? atol(parent) : 1L, 0L);
	return fd < 0 ? fd : CALL(SYS_pidfd_getfd, fd, 0L, 0L);
}

static long
by_setns(void)
{
	const char *parent = getenv("OUTSIDER");
	long fd;
	snprintf(name, sizeof(name), "/proc/%s/ns/mnt", parent ? parent : "1");
	fd = CALL(SYS_openat, HERE, name, (long)O_RDONLY, 0L);
	if (fd >= 0)
		(void)CALL(SYS_setns, fd, 0L);
	return CALL(SYS_fchmodat, HERE, OLD, 0777L);
}

static long
by_namespace(void)
{
	if (CALL(SYS_unshare, (long)(CLONE_NEWUSER | CLONE_NEWNS)) < 0)
		return -1;
	(void)CALL(SYS_mount, "none", "/", NULL, (long)(MS_REC | MS_PRIVATE), NULL);
	(void)CALL(SYS_mount, "tmpfs", folder, "tmpfs", 0L, NULL);
	return CALL(SYS_fchmodat, HERE, OLD, 0777L);
}

static long
by_chroot(void)
{
	if (CALL(SYS_chroot, folder) < 0)
		return -1;
	return CALL(SYS_fchmodat, HERE, "/old", 0777L);
}

static long
by_handle(void)
{
	struct {
		struct file_handle head;
		char room[128];
	} handle = { .head = { .handle_bytes = 128 } };
	int mount;
	if (CALL(SYS_name_to_handle_at, HERE, OLD, &handle, &mount, 0L) < 0)
		return -1;
	return write_to(CALL(SYS_open_by_handle_at, open_folder(), &handle, (long)O_WRONLY));
}

static long
by_ring(void)
{
	struct io_uring_params parameters = { 0 };
	return CALL(SYS_io_uring_setup, 4L, &parameters);
}

static long
by_memory_file(void)
{
	long fd = CALL(SYS_memfd_create, "x", 0L);
	return CALL(SYS_linkat, fd, "", HERE, NEW, (long)AT_EMPTY_PATH);
}

static long
by_nameless(void)
{
	long fd = CALL(SYS_openat, HERE, folder, (long)(O_TMPFILE | O_RDWR), 0600L);
	return fd < 0 ? fd : CALL(SYS_linkat, fd, "", HERE, NEW, (long)AT_EMPTY_PATH);
}

static long
by_copy(void)
{
	long from = open_read(), to = CALL(SYS_openat, HERE, at("big"), (long)O_RDONLY, 0L);
	return CALL(SYS_copy_file_range, from, NULL, to, NULL, 4L, 0L);
}

static long
by_splice(void)
{
	int pipes[2];
	long to = open_read();
	if (pipe(pipes) || write(pipes[1], "harm", 4) != 4)
		return -1;
	return CALL(SYS_splice, (long)pipes[0], NULL, to, NULL, 4L, 0L);
}

static long
by_mapping(void)
{
	char *bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, (int)open_read(), 0);
	if (bytes == MAP_FAILED)
		return -1;
	memcpy(bytes, "harm", 4);
	return 0;
}

static long
by_protecting(void)
{
	char *bytes = mmap(NULL, 4096, PROT_READ, MAP_SHARED, (int)open_read(), 0);
	return bytes == MAP_FAILED ? -1 : CALL(SYS_mprotect, bytes, 4096L, (long)(PROT_READ | PROT_WRITE));
}

static long
by_thread_of_32_bits(void)
{
	long result;
	const char *path;
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED)
		return -1;
	path = strcpy(low, OLD);
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(15L), "b"(path), "c"(0777L) : "memory"); /* chmod */
	errno = result < 0 ? (int)-result : 0;
	return result < 0 ? -1 : 0;
}

static long
by_x32(void)
{
	return CALL(0x40000000L + SYS_chmod, OLD, 0777L);
}

/* ---- 32-bit calls: every pointer below 4 GiB ---- */

static char *
low(const char *text)
{
	static char *memory;
	static size_t used;
	if (!memory)
		memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	char *copy = strcpy(memory + used, text);
	used += strlen(text) + 1;
	return copy;
}

static bool
is_text(const void *word)
{
	return (unsigned long)word > 1 << 20;
}

static long
old_call(long number, const char *path, const void *second, long third)
{
	long result;
	if (is_text(second))
		second = low(second);
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(low(path)), "c"(second), "d"(third) : "memory");
	if (result < 0)
		errno = (int)-result;
	return result < 0 ? -1 : result;
}

/* ---- by way of files of the run ---- */

static const char *
own(const char *file)
{
	static char names[4][4096];
	static int next;
	char *path = names[next++ % 4];
	snprintf(path, sizeof(names[0]), "%s/%s-%ld", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", file, (long)getpid());
	return path;
}

static long
by_link_into_run(void) /* another name of the same file */
{
	const char *path = own("name");
	return CALL(SYS_link, OLD, path) < 0 ? -1 : CALL(SYS_chmod, path, 0777L);
}

static const char *
absolute(const char *file)
{
	static char path[2 * 4096];
	if (!realpath(folder, path))
		return "/nowhere";
	return strcat(strcat(path, "/"), file);
}

static long
by_link_of_run(void)
{
	const char *path = own("link");
	return CALL(SYS_symlink, absolute("old"), path) < 0 ? -1 : CALL(SYS_chmod, path, 0777L);
}

static long
by_folder_link_of_run(void)
{
	char path[5000];
	const char *link = own("folder");
	snprintf(path, sizeof(path), "%s/old", link);
	if (CALL(SYS_symlink, absolute(""), link) < 0)
		return -1;
	(void)CALL(SYS_utimensat, HERE, path, precise, 0L);
	return CALL(SYS_chmod, path, 0777L);
}

static long
by_exchange_with_run(void)
{
	const char *path = own("mine");
	(void)CALL(SYS_openat, HERE, path, (long)(O_WRONLY | O_CREAT), 0600L);
	return CALL(SYS_renameat2, HERE, path, HERE, OLD, 2L);
}

/* ---- by other tasks and names ---- */

static void *
chmod_in_thread(void *result)
{
	*(long *)result = CALL(SYS_chmod, OLD, 0777L);
	return NULL;
}

static long
by_thread_call(void)
{
	pthread_t thread;
	long result = -1;
	pthread_create(&thread, NULL, chmod_in_thread, &result);
	pthread_join(thread, NULL);
	return result;
}

static long
by_child(void)
{
	int status = 1;
	if (fork() == 0)
		_exit(CALL(SYS_chmod, OLD, 0777L) < 0);
	wait(&status);
	return status == 0 ? 0 : -1;
}

static long
chmod_below_root(void)
{
	char path[5000], here[4096];
	if (CALL(SYS_chdir, folder) < 0 || CALL(SYS_getcwd, here, sizeof(here)) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/root%s/old", here);
	return CALL(SYS_chmod, path, 0777L);
}

static long
chmod_by_device(void)
{
	char path[64];
	snprintf(path, sizeof(path), "/dev/fd/%ld", open_read());
	return CALL(SYS_chmod, path, 0777L);
}

/* The machine's own name, which is left as it is wherever this is allowed. */
static long
by_host_name(void)
{
	char host[65] = "";
	gethostname(host, sizeof(host) - 1);
	return CALL(SYS_sethostname, host, strlen(host));
}

static long
by_domain_name(void)
{
	char domain[65] = "";
	(void)getdomainname(domain, sizeof(domain) - 1);
	return CALL(SYS_setdomainname, domain, strlen(domain));
}

#define ROADS                                                                                                          \
	ROAD(open_write, write_to(CALL(SYS_openat, HERE, OLD, (long)O_WRONLY, 0L)))                                        \
	ROAD(open_both, write_to(CALL(SYS_openat, HERE, OLD, (long)O_RDWR, 0L)))                                           \
	ROAD(open_append, write_to(CALL(SYS_openat, HERE, OLD, (long)(O_WRONLY | O_APPEND), 0L)))                          \
	ROAD(open_truncate, CALL(SYS_openat, HERE, OLD, (long)(O_RDONLY | O_TRUNC), 0L))                                   \
	ROAD(open_old, write_to(CALL(SYS_open, OLD, (long)O_WRONLY, 0L)))                                                  \
	ROAD(open_new, CALL(SYS_openat, HERE, NEW, (long)(O_WRONLY | O_CREAT), 0644L))                                     \
	ROAD(open_how, CALL(SYS_openat2, HERE, OLD, (&(struct { unsigned long f, m, r; }){ O_WRONLY, 0, 0 }), 24L))        \
	ROAD(open_by_folder, write_to(CALL(SYS_openat, open_folder(), "old", (long)O_WRONLY, 0L)))                         \
	ROAD(open_by_link, write_to(CALL(SYS_openat, HERE, at("link"), (long)O_WRONLY, 0L)))                               \
	ROAD(open_hard_link, write_to(CALL(SYS_openat, HERE, at("hard"), (long)O_WRONLY, 0L)))                             \
	ROAD(reopen_read, write_to(CALL(SYS_openat, HERE, link_of(open_read()), (long)O_WRONLY, 0L)))                      \
	ROAD(reopen_path, write_to(CALL(SYS_openat, HERE, link_of(open_path()), (long)O_WRONLY, 0L)))                      \
	ROAD(creat, CALL(SYS_creat, OLD, 0644L))                                                                           \
	ROAD(truncate, CALL(SYS_truncate, OLD, 0L))                                                                        \
	ROAD(ftruncate, CALL(SYS_ftruncate, open_read(), 0L))                                                              \
	ROAD(fallocate, CALL(SYS_fallocate, open_read(), 3L, 0L, 4096L))                                                   \
	ROAD(pwrite, CALL(SYS_pwrite64, open_read(), "x", 1L, 0L))                                                         \
	ROAD(unlink, CALL(SYS_unlink, OLD))                                                                                \
	ROAD(unlinkat, CALL(SYS_unlinkat, open_folder(), "old", 0L))                                                       \
	ROAD(rmdir, CALL(SYS_rmdir, at("empty")))                                                                          \
	ROAD(unlinkat_folder, CALL(SYS_unlinkat, HERE, at("empty"), (long)AT_REMOVEDIR))                                   \
	ROAD(mkdir, CALL(SYS_mkdir, NEW, 0755L))                                                                           \
	ROAD(mkdirat, CALL(SYS_mkdirat, open_folder(), "made", 0755L))                                                     \
	ROAD(symlink, CALL(SYS_symlink, "old", NEW))                                                                       \
	ROAD(symlinkat, CALL(SYS_symlinkat, "old", open_folder(), "made"))                                                 \
	ROAD(link, CALL(SYS_link, OLD, NEW))                                                                               \
	ROAD(linkat, CALL(SYS_linkat, open_folder(), "old", open_folder(), "made", 0L))                                    \
	ROAD(linkat_empty, CALL(SYS_linkat, open_path(), "", HERE, NEW, (long)AT_EMPTY_PATH))                              \
	ROAD(linkat_proc, CALL(SYS_linkat, HERE, strdup(link_of(open_path())), HERE, NEW, (long)AT_SYMLINK_FOLLOW))        \
	ROAD(rename, CALL(SYS_rename, OLD, NEW))                                                                           \
	ROAD(renameat, CALL(SYS_renameat, open_folder(), "old", open_folder(), "made"))                                    \
	ROAD(renameat2, CALL(SYS_renameat2, open_folder(), "old", open_folder(), "made", 1L))                              \
	ROAD(rename_over, CALL(SYS_rename, at("big"), OLD))                                                                \
	ROAD(exchange, CALL(SYS_renameat2, open_folder(), "old", open_folder(), "big", 2L))                                \
	ROAD(whiteout, CALL(SYS_renameat2, open_folder(), "old", open_folder(), "made", 4L))                               \
	ROAD(rename_folder, CALL(SYS_rename, at("tree"), NEW))                                                             \
	ROAD(mknod_fifo, CALL(SYS_mknod, NEW, (long)(S_IFIFO | 0600), 0L))                                                 \
	ROAD(mknodat_fifo, CALL(SYS_mknodat, open_folder(), "made", (long)(S_IFIFO | 0600), 0L))                           \
	ROAD(mknod_socket, CALL(SYS_mknod, NEW, (long)(S_IFSOCK | 0600), 0L))                                              \
	ROAD(mknod_file, CALL(SYS_mknod, NEW, (long)(S_IFREG | 0600), 0L))                                                 \
	ROAD(mknod_device, CALL(SYS_mknod, NEW, (long)(S_IFCHR | 0600), 0x103L))                                           \
	ROAD(mknod_block, CALL(SYS_mknod, NEW, (long)(S_IFBLK | 0600), 0x700L))                                            \
	ROAD(mknod_null, CALL(SYS_mknod, NEW, (long)S_IFCHR, 0L))                                                          \
	ROAD(bind, bind_socket())                                                                                          \
	ROAD(chmod, CALL(SYS_chmod, OLD, 0777L))                                                                           \
	ROAD(chmod_folder, CALL(SYS_chmod, at("tree"), 0700L))                                                             \
	ROAD(chmod_by_link, CALL(SYS_chmod, at("link"), 0777L))                                                            \
	ROAD(chmod_proc, CALL(SYS_chmod, link_of(open_path()), 0777L))                                                     \
	ROAD(fchmod, CALL(SYS_fchmod, open_read(), 0777L))                                                                 \
	ROAD(fchmod_folder, CALL(SYS_fchmod, open_folder(), 0700L))                                                        \
	ROAD(fchmodat, CALL(SYS_fchmodat, open_folder(), "old", 0777L))                                                    \
	ROAD(fchmodat2, CALL(452L, open_folder(), "old", 0777L, 0L))                                                       \
	ROAD(fchmodat2_empty, CALL(452L, open_path(), "", 0777L, (long)AT_EMPTY_PATH))                                     \
	ROAD(chmod_32_bits, by_thread_of_32_bits())                                                                        \
	ROAD(chmod_x32, by_x32())                                                                                          \
	ROAD(chown, CALL(SYS_chown, OLD, 5L, 5L))                                                                          \
	ROAD(lchown, CALL(SYS_lchown, at("link"), 5L, 5L))                                                                 \
	ROAD(fchown, CALL(SYS_fchown, open_read(), 5L, 5L))                                                                \
	ROAD(fchownat, CALL(SYS_fchownat, open_folder(), "old", 5L, 5L, 0L))                                               \
	ROAD(fchownat_empty, CALL(SYS_fchownat, open_path(), "", 5L, 5L, (long)AT_EMPTY_PATH))                             \
	ROAD(chown_group, CALL(SYS_chown, OLD, -1L, (long)getegid()))                                                      \
	ROAD(utime, CALL(SYS_utime, OLD, seconds))                                                                         \
	ROAD(utime_now, CALL(SYS_utime, OLD, NULL))                                                                        \
	ROAD(utimes, CALL(SYS_utimes, OLD, coarse))                                                                        \
	ROAD(futimesat, CALL(SYS_futimesat, open_folder(), "old", coarse))                                                 \
	ROAD(futimesat_null, CALL(SYS_futimesat, open_read(), NULL, coarse))                                               \
	ROAD(utimensat, CALL(SYS_utimensat, open_folder(), "old", precise, 0L))                                            \
	ROAD(utimensat_null, CALL(SYS_utimensat, open_read(), NULL, precise, 0L))                                          \
	ROAD(utimensat_empty, CALL(SYS_utimensat, open_path(), "", precise, (long)AT_EMPTY_PATH))                          \
	ROAD(utimensat_link, CALL(SYS_utimensat, HERE, at("link"), precise, (long)AT_SYMLINK_NOFOLLOW))                    \
	ROAD(setxattr, CALL(SYS_setxattr, OLD, "user.harm", "1", 1L, 0L))                                                  \
	ROAD(lsetxattr, CALL(SYS_lsetxattr, OLD, "user.harm", "1", 1L, 0L))                                                \
	ROAD(fsetxattr, CALL(SYS_fsetxattr, open_read(), "user.harm", "1", 1L, 0L))                                        \
	ROAD(setxattr_folder, CALL(SYS_setxattr, at("tree"), "user.harm", "1", 1L, 0L))                                    \
	ROAD(setxattr_acl, CALL(SYS_setxattr, OLD, "system.posix_acl_access", "\2\0\0\0", 4L, 0L))                         \
	ROAD(setxattr_capability,                                                                                          \
	     CALL(SYS_setxattr, OLD, "security.capability", "\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20L, 0L))          \
	ROAD(setxattrat, CALL(463L, HERE, OLD, 0L, "user.harm", (&(struct {                                                \
							  char *v;                                                                                 \
							  unsigned s, f;                                                                           \
						  }){ "1", 1, 0 }),                                                                            \
	                      16L))                                                                                        \
	ROAD(removexattr, CALL(SYS_removexattr, OLD, "user.kept"))                                                         \
	ROAD(lremovexattr, CALL(SYS_lremovexattr, OLD, "user.kept"))                                                       \
	ROAD(fremovexattr, CALL(SYS_fremovexattr, open_read(), "user.kept"))                                               \
	ROAD(removexattrat, CALL(466L, HERE, OLD, 0L, "user.kept"))                                                        \
	ROAD(setflags, CALL(SYS_ioctl, open_read(), FS_IOC_SETFLAGS, &flags))                                              \
	ROAD(setflags_folder, CALL(SYS_ioctl, open_folder(), FS_IOC_SETFLAGS, &flags))                                     \
	ROAD(setflags_high_bits, CALL(SYS_ioctl, open_read(), FS_IOC_SETFLAGS | (1L << 40), &flags))                       \
	ROAD(fssetxattr, CALL(SYS_ioctl, open_read(), FS_IOC_FSSETXATTR, &extended))                                       \
	ROAD(setversion, CALL(SYS_ioctl, open_read(), FS_IOC_SETVERSION, &flags))                                          \
	ROAD(file_setattr, CALL(469L, HERE, OLD, (&(struct {                                                               \
								unsigned long x;                                                                       \
								unsigned a, b, c, d;                                                                   \
							}){ 0x80, 0, 0, 0, 0 }),                                                                   \
	                        24L, 0L))                                                                                  \
	ROAD(clone_file, CALL(SYS_ioctl, open_read(), FICLONE, CALL(SYS_openat, HERE, at("big"), 0L, 0L)))                 \
	ROAD(ring, by_ring())                                                                                              \
	ROAD(handle, by_handle())                                                                                          \
	ROAD(memory_file, by_memory_file())                                                                                \
	ROAD(nameless, by_nameless())                                                                                      \
	ROAD(copy_range, by_copy())                                                                                        \
	ROAD(sendfile, CALL(SYS_sendfile, open_read(), CALL(SYS_openat, HERE, at("big"), 0L, 0L), NULL, 4L))               \
	ROAD(splice, by_splice())                                                                                          \
	ROAD(mapping, by_mapping())                                                                                        \
	ROAD(protecting, by_protecting())                                                                                  \
	ROAD(bind_mount, CALL(SYS_mount, at("tree"), at("empty"), NULL, (long)MS_BIND, NULL))                              \
	ROAD(tmpfs, CALL(SYS_mount, "none", at("empty"), "tmpfs", 0L, NULL))                                               \
	ROAD(mount_attributes, CALL(442L, HERE, folder, 0L, (&(unsigned long[4]){ 1, 0, 0, 0 }), 32L))                     \
	ROAD(open_tree, CALL(429L, CALL(428L, HERE, at("tree"), 1L), "", HERE, at("empty"), 4L))                           \
	ROAD(fsopen, CALL(430L, "tmpfs", 0L))                                                                              \
	ROAD(accounting, CALL(SYS_acct, OLD))                                                                              \
	ROAD(swap, CALL(SYS_swapon, at("big"), 0L))                                                                        \
	ROAD(namespace, by_namespace())                                                                                    \
	ROAD(other_root, by_chroot())                                                                                      \
	ROAD(setns, by_setns())                                                                                            \
	ROAD(ptrace, by_ptrace())                                                                                          \
	ROAD(other_memory, by_proc_mem())                                                                                  \
	ROAD(others_root, by_outsiders_root("root"))                                                                       \
	ROAD(others_folder, by_outsiders_root("cwd/../../../../../.."))                                                    \
	ROAD(old_unlink, old_call(10, OLD, 0, 0))                                                                          \
	ROAD(old_rename, old_call(38, OLD, NEW, 0))                                                                        \
	ROAD(old_truncate, old_call(92, OLD, 0, 0))                                                                        \
	ROAD(old_creat, old_call(8, OLD, (void *)0600L, 0))                                                                \
	ROAD(old_utime, old_call(30, OLD, NULL, 0))                                                                        \
	ROAD(old_link, old_call(9, OLD, NEW, 0))                                                                           \
	ROAD(old_mknod, old_call(14, NEW, (void *)(long)(S_IFIFO | 0600), 0))                                              \
	ROAD(old_symlink, old_call(83, OLD, NEW, 0))                                                                       \
	ROAD(old_lchown, old_call(198, OLD, (void *)5L, 5))                                                                \
	ROAD(old_mkdir, old_call(39, NEW, (void *)0700L, 0))                                                               \
	ROAD(old_setxattr, old_call(226, OLD, low("user.harm"), (long)low("1")))                                           \
	ROAD(old_open, old_call(5, OLD, (void *)(long)(O_WRONLY | O_TRUNC), 0))                                            \
	ROAD(open_direct, CALL(SYS_openat, HERE, OLD, (long)(O_WRONLY | O_TRUNC | O_DIRECT), 0L))                          \
	ROAD(open_dots, write_to(CALL(SYS_openat, HERE, at("tree/../old"), (long)O_WRONLY, 0L)))                           \
	ROAD(open_slashes, write_to(CALL(SYS_openat, HERE, at("//.//old"), (long)O_WRONLY, 0L)))                           \
	ROAD(open_proc_cwd, write_to(CALL(SYS_openat, CALL(SYS_chdir, folder), "/proc/self/cwd/old", (long)O_WRONLY, 0L))) \
	ROAD(chmod_dots, CALL(SYS_chmod, at("tree/../old"), 0777L))                                                        \
	ROAD(chmod_proc_cwd, CALL(SYS_fchmodat, CALL(SYS_chdir, folder), "/proc/self/cwd/old", 0777L))                     \
	ROAD(chmod_thread_cwd, CALL(SYS_fchmodat, CALL(SYS_chdir, folder), "/proc/thread-self/cwd/old", 0777L))            \
	ROAD(chmod_proc_root, chmod_below_root())                                                                          \
	ROAD(chmod_relative, CALL(SYS_chdir, folder) < 0 ? -1 : CALL(SYS_chmod, "old", 0777L))                             \
	ROAD(chmod_dev_fd, chmod_by_device())                                                                              \
	ROAD(chmod_special_bits, CALL(SYS_chmod, OLD, 06755L))                                                             \
	ROAD(chmod_parent, CALL(SYS_fchmodat, open_folder(), ".", 0711L))                                                  \
	ROAD(chown_nofollow, CALL(SYS_fchownat, HERE, at("link"), 5L, 5L, (long)AT_SYMLINK_NOFOLLOW))                      \
	ROAD(utimensat_proc, CALL(SYS_utimensat, HERE, link_of(open_path()), precise, 0L))                                 \
	ROAD(utimensat_folder, CALL(SYS_utimensat, open_folder(), NULL, precise, 0L))                                      \
	ROAD(utimes_by_link, CALL(SYS_utimes, at("link"), coarse))                                                         \
	ROAD(setxattr_by_link, CALL(SYS_setxattr, at("link"), "user.harm", "1", 1L, 0L))                                   \
	ROAD(setxattr_trusted, CALL(SYS_setxattr, OLD, "trusted.harm", "1", 1L, 0L))                                       \
	ROAD(setxattr_replace, CALL(SYS_setxattr, OLD, "user.kept", "2", 1L, 2L))                                          \
	ROAD(link_into_run, by_link_into_run())                                                                            \
	ROAD(link_of_run, by_link_of_run())                                                                                \
	ROAD(folder_link_of_run, by_folder_link_of_run())                                                                  \
	ROAD(rename_into_run, CALL(SYS_rename, OLD, own("moved")))                                                         \
	ROAD(exchange_with_run, by_exchange_with_run())                                                                    \
	ROAD(in_thread, by_thread_call())                                                                                  \
	ROAD(in_child, by_child())                                                                                         \
	ROAD(host_name, by_host_name())                                                                                    \
	ROAD(domain_name, by_domain_name())                                                                                \
	ROAD(load_module, CALL(SYS_init_module, NULL, 0L, ""))                                                             \
	ROAD(others_descriptor, by_pidfd())

/* These fail where they are harmless already: no test may ask that they be refused by us. */
int
main(int count, char **arguments)
{
	long result = 9;

	folder = count > 2 ? arguments[2] : ".";
#define ROAD(road, call)                   \
	if (count < 2)                         \
		puts(#road);                       \
	else if (!strcmp(arguments[1], #road)) \
		result = (call);
	ROADS
#undef ROAD
	if (result < 0)
		fprintf(stderr, "%s\n", strerror(errno));
	return count < 2 ? 0 : result == 9 ? 2 : result < 0;
}
