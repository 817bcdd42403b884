/* Let the n-th system call that writes below a folder fail, or kill the process there.

   Loaded by LD_PRELOAD, it stands between the C library and everything that calls it: Python, torch, HDF5,
   Arrow, safetensors. Nothing happens until `fault_arm` is called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum action { COUNT, ERROR, FULL, READ_ONLY, KILL, TEAR, PAUSE };
enum kind { TAKES_SPACE, OTHER, WRITES };

static char root[PATH_MAX];
static atomic_long calls;
static char writes[1 << 16]; /* of each call, whether half of it can be done */
static long at;
static int action, number, trace = -1;

void fault_arm(const char *folder, long nth, int what, int error, int trace_to) {
    strncpy(root, folder, sizeof root - 1);
    atomic_store(&calls, 0);
    at = nth, action = what, number = error, trace = trace_to;
}

long fault_calls(void) { return atomic_load(&calls); }

const char *fault_writes(void) { return writes; }

static void die(void) { syscall(SYS_kill, getpid(), SIGKILL); }

/* Whether a path, or the file of a descriptor, is below the folder. */
static int below(int dir, const char *path) {
    char whole[2 * PATH_MAX], link[64];
    if (!root[0]) return 0;
    if (path && path[0] == '/') {
        strncpy(whole, path, sizeof whole - 1);
        whole[sizeof whole - 1] = 0;
    } else {
        ssize_t size;
        if (path && dir == AT_FDCWD) {
            if (!getcwd(whole, PATH_MAX)) return 0;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
            if ((size = readlink(link, whole, PATH_MAX)) < 0) return 0;
            whole[size] = 0;
        }
        if (path) strncat(strcat(whole, "/"), path, PATH_MAX - 2);
    }
    return strncmp(whole, root, strlen(root)) == 0;
}

/* Count a call; return 1 if it must fail with `errno` set, 2 if it is to be torn (only writes can be). */
static int fails(const char *name, enum kind kind, int dir, const char *path) {
    int before = errno;
    if (!below(dir, path)) { errno = before; return 0; }
    long now = atomic_fetch_add(&calls, 1) + 1;
    if (now < (long)sizeof writes) writes[now] = kind == WRITES;
    if (trace >= 0) {
        char line[128];
        int size = snprintf(line, sizeof line, "%ld %s %.90s\n", now, name, path ? path : "");
        syscall(SYS_write, trace, line, size);
    }
    errno = before;
    if (now < at || action == COUNT) return 0;
    if (now == at && action == KILL) die();
    if (now == at && action == PAUSE) syscall(SYS_kill, getpid(), SIGSTOP);
    if (now == at && action == TEAR) return 2;
    if ((now == at && action == ERROR) || (action == FULL && kind != OTHER) || action == READ_ONLY) {
        errno = number;
        return 1;
    }
    return 0;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define PLAIN(type, name, kind, dir, path, parameters, arguments) \
    type name parameters { \
        static type (*real) parameters; \
        if (!real) real = (type (*) parameters)dlsym(RTLD_NEXT, #name); \
        int fault = fails(#name, kind, dir, path); \
        if (fault == 2) die(); \
        return fault ? -1 : real arguments; \
    }

/* Half of it is written, then the process is gone. */
#define WRITE(name, parameters, arguments, half) \
    ssize_t name parameters { \
        static ssize_t (*real) parameters; \
        if (!real) real = (ssize_t (*) parameters)dlsym(RTLD_NEXT, #name); \
        int fault = fails(#name, WRITES, fd, NULL); \
        if (fault == 2) { half; die(); } \
        return fault ? -1 : real arguments; \
    }

WRITE(write, (int fd, const void *data, size_t size), (fd, data, size), real(fd, data, size / 2))
WRITE(pwrite, (int fd, const void *data, size_t size, off_t place), (fd, data, size, place),
      real(fd, data, size / 2, place))
WRITE(pwrite64, (int fd, const void *data, size_t size, off64_t place), (fd, data, size, place),
      real(fd, data, size / 2, place))
WRITE(writev, (int fd, const struct iovec *data, int count), (fd, data, count), real(fd, data, count / 2))
WRITE(pwritev, (int fd, const struct iovec *data, int count, off_t place), (fd, data, count, place),
      real(fd, data, count / 2, place))

PLAIN(int, fsync, TAKES_SPACE, fd, NULL, (int fd), (fd))
PLAIN(int, fdatasync, TAKES_SPACE, fd, NULL, (int fd), (fd))
PLAIN(int, ftruncate, TAKES_SPACE, fd, NULL, (int fd, off_t size), (fd, size))
PLAIN(int, ftruncate64, TAKES_SPACE, fd, NULL, (int fd, off64_t size), (fd, size))
PLAIN(int, fchmod, OTHER, fd, NULL, (int fd, mode_t mode), (fd, mode))
PLAIN(int, chmod, OTHER, AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
PLAIN(int, fchmodat, OTHER, dir, path, (int dir, const char *path, mode_t mode, int flags), (dir, path, mode, flags))
PLAIN(int, rename, OTHER, AT_FDCWD, to, (const char *from, const char *to), (from, to))
PLAIN(int, renameat, OTHER, dir, to, (int old, const char *from, int dir, const char *to), (old, from, dir, to))
PLAIN(int, renameat2, OTHER, dir, to, (int old, const char *from, int dir, const char *to, unsigned int flags),
      (old, from, dir, to, flags))
PLAIN(int, unlink, OTHER, AT_FDCWD, path, (const char *path), (path))
PLAIN(int, unlinkat, OTHER, dir, path, (int dir, const char *path, int flags), (dir, path, flags))
PLAIN(int, rmdir, OTHER, AT_FDCWD, path, (const char *path), (path))
PLAIN(int, mkdir, TAKES_SPACE, AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
PLAIN(int, mkdirat, TAKES_SPACE, dir, path, (int dir, const char *path, mode_t mode), (dir, path, mode))

/* Returns its error instead of setting errno. */
#define ALLOCATE(name, size_type) \
    int name(int fd, size_type place, size_type size) { \
        REAL(int, #name, int, size_type, size_type); \
        int fault = fails(#name, TAKES_SPACE, fd, NULL); \
        if (fault == 2) die(); \
        return fault ? errno : real(fd, place, size); \
    }
ALLOCATE(posix_fallocate, off_t)
ALLOCATE(posix_fallocate64, off64_t)

/* Only an open that makes or empties a file counts. */
#define OPEN(name, type, dir, parameters, ...) \
    int name parameters { \
        static int (*real) type; \
        if (!real) real = (int (*) type)dlsym(RTLD_NEXT, #name); \
        mode_t mode = 0; \
        if (flags & O_CREAT) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        if (flags & (O_CREAT | O_TRUNC)) { \
            int fault = fails(#name, TAKES_SPACE, dir, path); \
            if (fault == 2) die(); \
            if (fault) return -1; \
        } \
        return real(__VA_ARGS__, flags, mode); \
    }
OPEN(open, (const char *, int, ...), AT_FDCWD, (const char *path, int flags, ...), path)
OPEN(open64, (const char *, int, ...), AT_FDCWD, (const char *path, int flags, ...), path)
OPEN(openat, (int, const char *, int, ...), dir, (int dir, const char *path, int flags, ...), dir, path)
OPEN(openat64, (int, const char *, int, ...), dir, (int dir, const char *path, int flags, ...), dir, path)

/* libstdc++ opens its files by this. */
FILE *fopen64(const char *path, const char *mode) {
    REAL(FILE *, "fopen64", const char *, const char *);
    if (strpbrk(mode, "wa+")) {
        int fault = fails("fopen64", TAKES_SPACE, AT_FDCWD, path);
        if (fault == 2) die();
        if (fault) return NULL;
    }
    return real(path, mode);
}
