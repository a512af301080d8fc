/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the network wall, and the decision. Loaded into programs and linked to the supervisor: system calls only,
 * no allocation, errno is kept.
 */
#include "preload/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define CALL(number, ...)                              \
	({                                                 \
		int tn_saved = errno;                          \
		long tn_result = syscall(number, __VA_ARGS__); \
		if (tn_result == -1)                           \
			tn_result = -errno;                        \
		errno = tn_saved;                              \
		tn_result;                                     \
	})

#define DNS_PORT 53
#define NO_HOST UINT32_MAX

/* ---- the file ---- */

static bool
file_of(const char *run_folder, char path[4096])
{
	return snprintf(path, 4096, "%s/%s", run_folder, TN_NETWORK_FILE) < 4096;
}

tn_status
tn__network_create(const char *run_folder, uint64_t pass)
{
	char path[4096];
	struct tn_network *network = MAP_FAILED;
	struct stat about;
	size_t kept = 0;
	if (!file_of(run_folder, path))
		return TN_LIMIT;
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return TN_IO;
	if (posix_fallocate(fd, 0, sizeof(*network)) == 0)
		network = mmap(NULL, sizeof(*network), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	close(fd);
	if (network == MAP_FAILED)
		return TN_IO;
	for (int i = 0; i <= 2; i++)
		if (fstat(i, &about) == 0 && S_ISSOCK(about.st_mode))
			network->inherited[kept++] = about.st_ino;
	network->pass = pass;
	network->magic = TN_NETWORK_MAGIC;
	munmap(network, sizeof(*network));
	return TN_OK;
}

void
tn__network_go_on(const char *run_folder, const char *before)
{
	struct tn_network *network = tn__network_open(run_folder, 0), *old = tn__network_open(before, 0);
	if (network != NULL)
		network->kernels = old != NULL ? old->kernels : 1;
	if (network != NULL && old != NULL) {
		network->host_count = old->host_count;
		network->address_count = old->address_count;
		memcpy(network->hosts, old->hosts, sizeof(network->hosts));
		memcpy(network->addresses, old->addresses, sizeof(network->addresses));
		for (size_t i = 0; i < TN_NETWORK_HOSTS; i++)
			network->hosts[i].connections = network->hosts[i].sends = 0; /* told of that run */
	}
	if (old != NULL)
		tn__network_close(old);
	if (network != NULL)
		tn__network_close(network);
}

struct tn_network *
tn__network_open(const char *run_folder, uint64_t pass)
{
	char path[4096];
	struct stat about;
	struct tn_network *network = NULL;
	if (!file_of(run_folder, path))
		return NULL;
	long fd = CALL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0, 0L, pass);
	if (fd < 0)
		return NULL;
	if (fstat((int)fd, &about) == 0 && about.st_size >= (off_t)sizeof(*network)) {
		long mapped = CALL(SYS_mmap, NULL, sizeof(*network), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
		if (mapped > 0)
			network = (struct tn_network *)mapped; /* NOLINT: an address from the kernel */
	}
	(void)CALL(SYS_close, fd);
	if (network != NULL && network->magic != TN_NETWORK_MAGIC) {
		tn__network_close(network);
		network = NULL;
	}
	return network;
}

void
tn__network_close(struct tn_network *network)
{
	(void)CALL(SYS_munmap, network, sizeof(*network));
}

/* ---- addresses ---- */

struct internet {
	uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
	unsigned port;
};

static bool
read_address(const struct sockaddr *address, socklen_t length, struct internet *out)
{
	if (address != NULL && length >= sizeof(struct sockaddr_in) && address->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, address, sizeof(in));
		memset(out->bytes, 0, 10);
		memset(out->bytes + 10, 0xff, 2);
		memcpy(out->bytes + 12, &in.sin_addr, 4);
		out->port = ntohs(in.sin_port);
		return true;
	}
	if (address != NULL && length >= offsetof(struct sockaddr_in6, sin6_scope_id) && address->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memset(&in6, 0, sizeof(in6));
		memcpy(&in6, address, length < sizeof(in6) ? length : sizeof(in6));
		memcpy(out->bytes, &in6.sin6_addr, 16);
		out->port = ntohs(in6.sin6_port);
		return true;
	}
	return false;
}

void
tn__network_real_path(const char *path, char *out)
{
	char link[64];
	long length, fd = CALL(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%ld", fd);
	length = fd < 0 ? -1 : CALL(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
	if (length < 0)
		length = snprintf(out, PATH_MAX, "%s", path);
	out[length] = '\0';
	if (fd >= 0)
		(void)CALL(SYS_close, fd);
}

bool
tn__network_path_of(const struct sockaddr *address, socklen_t length, char *out)
{
	const struct sockaddr_un *named = (const void *)address;
	if (address == NULL || length <= offsetof(struct sockaddr_un, sun_path) || address->sa_family != AF_UNIX)
		return false;
	size_t size = length - offsetof(struct sockaddr_un, sun_path);
	if (size > sizeof(named->sun_path))
		size = sizeof(named->sun_path);
	memcpy(out, named->sun_path, size);
	out[size] = '\0';
	for (size_t i = 0; named->sun_path[0] == '\0' && i < size; i++)
		if (out[i] == '\0') /* as /proc/net/unix shows it */
			out[i] = '@';
	return true;
}

static bool
is_version_4(const struct internet *at)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	return memcmp(at->bytes, mapped, 12) == 0;
}

/* Loopback and "any" are this machine; of other addresses the kernel binds those only that are. */
static bool
is_local(const struct internet *at)
{
	static const uint8_t any[16] = { 0 }, loopback[16] = { [15] = 1 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	bool four = is_version_4(at);
	if (memcmp(at->bytes, any, 16) == 0 || memcmp(at->bytes, loopback, 16) == 0 ||
	    (four && (at->bytes[12] == 127 || memcmp(at->bytes + 12, any, 4) == 0)))
		return true;
	memcpy(&in.sin_addr, at->bytes + 12, 4);
	memcpy(&in6.sin6_addr, at->bytes, 16);
	long fd = CALL(SYS_socket, four ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	long result = four ? CALL(SYS_bind, fd, &in, sizeof(in)) : CALL(SYS_bind, fd, &in6, sizeof(in6));
	(void)CALL(SYS_close, fd);
	return result == 0;
}

bool
tn__network_is_local(const struct sockaddr *address, socklen_t length)
{
	struct internet at;
	return read_address(address, length, &at) && is_local(&at);
}

bool
tn__network_is_dns(const struct sockaddr *address, socklen_t length)
{
	struct internet at;
	return read_address(address, length, &at) && at.port == DNS_PORT;
}

/* "10.0.0.7", "::1"; for this machine with the port, since many services share it. */
static void
write_name(const struct internet *at, bool local, char name[TN_NETWORK_NAME])
{
	char text[INET6_ADDRSTRLEN] = "";
	bool four = is_version_4(at);
	if (inet_ntop(four ? AF_INET : AF_INET6, four ? at->bytes + 12 : at->bytes, text, sizeof(text)) == NULL)
		strcpy(text, "?");
	if (!local)
		strcpy(name, text);
	else
		snprintf(name, TN_NETWORK_NAME, four ? "%s:%u" : "[%s]:%u", text, at->port);
}

/* ---- rows ---- */

static uint32_t
count_of(_Atomic uint32_t *count, uint32_t most)
{
	uint32_t value = atomic_load_explicit(count, memory_order_acquire);
	return value < most ? value : most;
}

/* The row of a name, made where there is none; NO_HOST when the table is full. Two processes may make the same row twice:
 * then either does. */
static uint32_t
host_of(struct tn_network *network, const char *name)
{
	uint32_t count = count_of(&network->host_count, TN_NETWORK_HOSTS);
	for (uint32_t i = 0; i < count; i++)
		if (atomic_load_explicit(&network->hosts[i].ready, memory_order_acquire) &&
		    strncasecmp(network->hosts[i].name, name, TN_NETWORK_NAME - 1) == 0)
			return i;
	if (count == TN_NETWORK_HOSTS)
		return NO_HOST;
	uint32_t at = atomic_fetch_add(&network->host_count, 1);
	if (at >= TN_NETWORK_HOSTS)
		return NO_HOST;
	struct tn_network_host *host = &network->hosts[at];
	size_t length = strnlen(name, TN_NETWORK_NAME - 1);
	memcpy(host->name, name, length);
	host->name[length] = '\0';
	atomic_store_explicit(&host->ready, 1, memory_order_release);
	return at;
}

static bool
is_at(struct tn_network_address *row, const struct internet *at)
{
	return atomic_load_explicit(&row->ready, memory_order_acquire) && memcmp(row->bytes, at->bytes, 16) == 0 &&
	       (row->port == 0 || row->port == at->port);
}

static void
add_address(struct tn_network *network, const struct internet *at, uint32_t port, uint32_t host)
{
	uint32_t count = count_of(&network->address_count, TN_NETWORK_ADDRESSES);
	for (uint32_t i = 0; i < count; i++)
		if (is_at(&network->addresses[i], at) && network->addresses[i].port == port &&
		    network->addresses[i].host == host)
			return;
	uint32_t row = count < TN_NETWORK_ADDRESSES ? atomic_fetch_add(&network->address_count, 1) : count;
	if (row >= TN_NETWORK_ADDRESSES || host == NO_HOST)
		return;
	memcpy(network->addresses[row].bytes, at->bytes, 16);
	network->addresses[row].port = port;
	network->addresses[row].host = host;
	atomic_store_explicit(&network->addresses[row].ready, 1, memory_order_release);
}

/* The newest name of an address (one that was read from, if any was), or the address itself. */
static uint32_t
host_at(struct tn_network *network, const struct internet *at, bool local)
{
	char name[TN_NETWORK_NAME];
	uint32_t count = count_of(&network->address_count, TN_NETWORK_ADDRESSES), found = NO_HOST;
	for (uint32_t i = 0; i < count; i++)
		if (is_at(&network->addresses[i], at) && (!local || network->addresses[i].port != 0)) {
			found = network->addresses[i].host;
			if (atomic_load(&network->hosts[found].read))
				return found;
		}
	if (found != NO_HOST)
		return found;
	write_name(at, local, name);
	uint32_t host = host_of(network, name);
	add_address(network, at, local ? at->port : 0, host);
	return host;
}

static void
note_read(struct tn_network *network, const struct internet *at, bool local)
{
	uint32_t count, host = host_at(network, at, local);
	if (host == NO_HOST)
		return;
	atomic_store(&network->hosts[host].read, 1);
	count = count_of(&network->address_count, TN_NETWORK_ADDRESSES);
	for (uint32_t i = 0; i < count; i++) /* an address may have more than one name */
		if (is_at(&network->addresses[i], at) && (!local || network->addresses[i].port != 0))
			atomic_store(&network->hosts[network->addresses[i].host].read, 1);
}

static enum tn_network_answer
refuse(struct tn_network *network, uint32_t host, bool connection)
{
	if (host == NO_HOST)
		atomic_fetch_add(&network->lost, 1);
	else
		atomic_fetch_add(connection ? &network->hosts[host].connections : &network->hosts[host].sends, 1);
	return TN_NETWORK_REFUSED;
}

/* ---- who listens ---- */

static void
set_port(_Atomic uint64_t *bits, unsigned port)
{
	if (port != 0 && port < 65536)
		atomic_fetch_or(&bits[port / 64], UINT64_C(1) << port % 64);
}

static bool
has_port(_Atomic uint64_t *bits, unsigned port)
{
	return port < 65536 && (atomic_load(&bits[port / 64]) >> port % 64 & 1) != 0;
}

void
tn__network_listens(struct tn_network *network, const struct sockaddr *address, socklen_t length, bool udp)
{
	struct internet at;
	if (read_address(address, length, &at))
		set_port(udp ? network->udp : network->tcp, at.port);
}

/* Calls `take` for each line of a file, until it says true. */
static bool
any_line(const char *path, bool (*take)(const char *line, void *context), void *context)
{
	char buffer[4096];
	size_t used = 0;
	long fd = CALL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0), got;
	bool found = false;
	if (fd < 0)
		return false;
	while (!found && (got = CALL(SYS_read, fd, buffer + used, sizeof(buffer) - 1 - used)) > 0) {
		char *line = buffer, *end;
		used += (size_t)got;
		buffer[used] = '\0';
		while (!found && (end = memchr(line, '\n', used - (size_t)(line - buffer))) != NULL) {
			*end = '\0';
			found = take(line, context);
			line = end + 1;
		}
		used -= (size_t)(line - buffer);
		memmove(buffer, line, used);
		if (used == sizeof(buffer) - 1)
			used = 0; /* no line of these files is so long */
	}
	(void)CALL(SYS_close, fd);
	return found;
}

struct listener {
	unsigned port;
	char state[3];
	unsigned long long inode;
};

/* A line of /proc/net/tcp or udp: number, local and remote address, state, queues, timer, retransmits, uid, timeout,
 * inode. */
static bool
is_listener(const char *line, void *context)
{
	struct listener *listener = context;
	unsigned port;
	char state[3];
	unsigned long long inode;
	if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %2s %*s %*s %*s %*d %*d %llu", &port, state, &inode) !=
	    3)
		return false;
	if (port != listener->port || strcmp(state, listener->state) != 0)
		return false;
	listener->inode = inode;
	return true;
}

/* Was a process started with the run's variable that this one was started with? */
static bool
same_run(long processes, const char *pid, const char *run)
{
	char path[300], buffer[8192];
	size_t wanted = strlen(run), used = 0;
	bool found = false;
	long got;
	snprintf(path, sizeof(path), "%s/environ", pid);
	long fd = CALL(SYS_openat, processes, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	while (!found && (got = CALL(SYS_read, fd, buffer + used, sizeof(buffer) - used)) > 0) {
		used += (size_t)got;
		found = memmem(buffer, used, run, wanted + 1) != NULL;
		if (used > wanted && !found) { /* a variable may lie across two pieces */
			memmove(buffer, buffer + used - wanted, wanted);
			used = wanted;
		}
	}
	(void)CALL(SYS_close, fd);
	return found;
}

extern char **environ;

static const char *
run_variable(void)
{
	for (char **at = environ; at != NULL && *at != NULL; at++)
		if (strncmp(*at, "TONNAGE_RUN=", 12) == 0)
			return *at;
	return NULL;
}

typedef bool visitor(pid_t process, int fd, unsigned long long inode, void *context);

static bool
each_socket_of(long processes, const char *pid, visitor *visit, void *context)
{
	char path[300], buffer[4096], text[64];
	bool found = false;
	long got;
	snprintf(path, sizeof(path), "%s/fd", pid);
	long fd = CALL(SYS_openat, processes, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	while (!found && (got = CALL(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < got && !found;) {
			unsigned short size;
			unsigned long long inode;
			memcpy(&size, buffer + at + 16, sizeof(size));
			long length = CALL(SYS_readlinkat, fd, buffer + at + 19, text, sizeof(text) - 1);
			text[length > 0 ? length : 0] = '\0';
			if (sscanf(text, "socket:[%llu]", &inode) == 1)
				found = visit(atoi(pid), atoi(buffer + at + 19), inode, context);
			at += size;
		}
	(void)CALL(SYS_close, fd);
	return found;
}

void
tn__network_each_socket(visitor *visit, void *context)
{
	char buffer[4096];
	bool found = false;
	long got, processes = CALL(SYS_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (processes < 0)
		return;
	while (!found && (got = CALL(SYS_getdents64, processes, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < got && !found;) {
			unsigned short size;
			const char *name = buffer + at + 19;
			memcpy(&size, buffer + at + 16, sizeof(size));
			found = name[0] >= '1' && name[0] <= '9' && each_socket_of(processes, name, visit, context);
			at += size;
		}
	(void)CALL(SYS_close, processes);
}

struct held_socket {
	unsigned long long inode;
	const char *run;
	bool found;
};

static bool
is_of_this_run(pid_t process, int fd, unsigned long long inode, void *context)
{
	struct held_socket *socket = context;
	char pid[32];
	(void)fd;
	if (inode != socket->inode)
		return false;
	snprintf(pid, sizeof(pid), "/proc/%d", process);
	socket->found = same_run(AT_FDCWD, pid, socket->run);
	return socket->found;
}

/* Does a process of this run hold the socket? For programs that do not call libc to listen. */
static bool
is_held_by_run(unsigned long long inode)
{
	struct held_socket socket = { .inode = inode, .run = run_variable() };
	if (socket.run != NULL)
		tn__network_each_socket(is_of_this_run, &socket);
	return socket.found;
}

static bool
ask_kernel(struct tn_network *network, unsigned port, bool udp)
{
	static const char *const files[2][2] = { { "/proc/self/net/tcp", "/proc/self/net/tcp6" },
		                                     { "/proc/self/net/udp", "/proc/self/net/udp6" } };
	for (int i = 0; i < 2; i++) {
		struct listener listener = { .port = port };
		strcpy(listener.state, udp ? "07" : "0A");
		if (any_line(files[udp][i], is_listener, &listener) && is_held_by_run(listener.inode)) {
			set_port(udp ? network->udp : network->tcp, port);
			return true;
		}
	}
	return false;
}

static bool
is_own(struct tn_network *network, const struct internet *at, bool udp)
{
	return has_port(udp ? network->udp : network->tcp, at->port) || ask_kernel(network, at->port, udp);
}

bool
tn__network_is_own(struct tn_network *network, const struct sockaddr *address, socklen_t length, bool udp)
{
	struct internet at;
	return read_address(address, length, &at) && is_own(network, &at, udp);
}

/* A line of /proc/net/unix: address, references, protocol, flags, type, state, inode, name. */
static bool
is_name_of_run(const char *line, void *context)
{
	unsigned long long inode;
	int name = 0;
	if (sscanf(line, "%*x: %*x %*x %*x %*x %*x %llu %n", &inode, &name) != 1 || name == 0 ||
	    strcmp(line + name, context) != 0)
		return false;
	return is_held_by_run(inode);
}

/* ---- what went over a connection ---- */

int
tn__network_option(int fd, int option)
{
	int value = -1;
	socklen_t length = sizeof(value);
	return CALL(SYS_getsockopt, fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

bool
tn__network_count(int fd, struct tn_network_count *out)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);
	int waiting = 0;
	memset(&info, 0, sizeof(info));
	if (CALL(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
		return false;
	(void)CALL(SYS_ioctl, fd, SIOCOUTQ, &waiting);
	out->sent = info.tcpi_bytes_acked + (uint64_t)waiting;
	out->received = info.tcpi_bytes_received;
	return true;
}

bool
tn__network_is_too_much(const struct tn_network_count *first, const struct tn_network_count *now, uint64_t more)
{
	return now->sent - first->sent + more > TN_NETWORK_ALLOWANCE + (now->received - first->received);
}

/* ---- the decision ---- */

void
tn__network_named(struct tn_network *network, const char *name, const struct sockaddr *address, socklen_t length)
{
	struct internet at;
	if (name != NULL && *name && read_address(address, length, &at) && !is_local(&at))
		add_address(network, &at, 0, host_of(network, name));
}

enum tn_network_answer
tn__network_connect(struct tn_network *network, const struct sockaddr *address, socklen_t length)
{
	struct internet at;
	if (!read_address(address, length, &at)) {
		bool inside = address == NULL || length < sizeof(sa_family_t) || address->sa_family == AF_UNIX ||
		              address->sa_family == AF_UNSPEC || address->sa_family == AF_NETLINK ||
		              address->sa_family == AF_ALG;
		if (inside || !tn_network_is_closed(network))
			return TN_NETWORK_FREE;
		return refuse(network, host_of(network, "another kind of network"), true);
	}
	bool local = is_local(&at), closed = tn_network_is_closed(network);
	if (local && (has_port(network->tcp, at.port) || (closed && is_own(network, &at, false))))
		return TN_NETWORK_FREE;
	if (!closed) {
		atomic_fetch_add(&network->left, 1);
		note_read(network, &at, local);
		return TN_NETWORK_FREE;
	}
	uint32_t host = host_at(network, &at, local);
	if ((host != NO_HOST && atomic_load(&network->hosts[host].read)) || at.port == DNS_PORT) {
		atomic_fetch_add(&network->left, 1);
		return TN_NETWORK_BOUNDED;
	}
	return refuse(network, host, true);
}

enum tn_network_answer
tn__network_datagram(struct tn_network *network, const struct sockaddr *address, socklen_t length, bool server)
{
	struct internet at;
	if (!tn_network_is_closed(network) || server)
		return TN_NETWORK_FREE;
	if (!read_address(address, length, &at))
		return tn__network_connect(network, address, length);
	bool local = is_local(&at);
	if (at.port == DNS_PORT || (local && is_own(network, &at, true)))
		return TN_NETWORK_FREE;
	return refuse(network, host_at(network, &at, local), false);
}

/* Daemons that do for a program what the run keeps it from doing itself. */
static bool
is_container_daemon(const char *path)
{
	static const char *const names[] = { "docker.sock",    "podman.sock", "containerd.sock", "crio.sock",
		                                 "buildkitd.sock", "lxd.socket",  "libvirt-sock",    "docker-cli.sock" };
	const char *slash = strrchr(path, '/'), *last = slash != NULL ? slash + 1 : path;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(last, names[i]) == 0)
			return true;
	return false;
}

/* Services of the machine that looking up names and users, logging and showing windows need. */
static bool
is_of_the_system(const char *path)
{
	static const char *const beginnings[] = { "/run/nscd/",
		                                      "/var/run/nscd/",
		                                      "/run/systemd/",
		                                      "/var/run/systemd/",
		                                      "/var/lib/sss/",
		                                      "/run/dbus/",
		                                      "/var/run/dbus/",
		                                      "/dev/log",
		                                      "/run/user/",
		                                      "/tmp/.X11-unix/",
		                                      "/tmp/.ICE-unix/",
		                                      "/run/nvidia",
		                                      "/var/run/nvidia",
		                                      "/run/nslcd/",
		                                      "/var/run/nslcd/",
		                                      "/run/avahi-daemon/",
		                                      "/var/run/avahi-daemon/",
		                                      "/run/samba/",
		                                      "/var/run/samba/",
		                                      "/run/uuidd/",
		                                      "/var/run/uuidd/" };
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (strncmp(path, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

enum tn_network_answer
tn__network_path(struct tn_network *network, const char *path, bool own)
{
	if (own)
		return TN_NETWORK_FREE;
	if (is_container_daemon(path))
		return refuse(network, host_of(network, path), true);
	if (is_of_the_system(path))
		return TN_NETWORK_FREE;
	uint32_t host = host_of(network, path);
	if (!tn_network_is_closed(network)) {
		atomic_fetch_add(&network->left, 1);
		if (host != NO_HOST)
			atomic_store(&network->hosts[host].read, 1);
		return TN_NETWORK_FREE;
	}
	if ((host != NO_HOST && atomic_load(&network->hosts[host].read)) ||
	    any_line("/proc/self/net/unix", is_name_of_run, (void *)(uintptr_t)path))
		return TN_NETWORK_FREE;
	return refuse(network, host, true);
}

void
tn__network_binds(struct tn_network *network, const char *path)
{
	uint32_t host = host_of(network, path);
	if (host != NO_HOST)
		atomic_store(&network->hosts[host].read, 1);
}

void
tn__network_refused_send(struct tn_network *network, const struct sockaddr *address, socklen_t length)
{
	struct internet at;
	uint32_t host = read_address(address, length, &at) ? host_at(network, &at, is_local(&at)) : NO_HOST;
	(void)refuse(network, host, false);
}
