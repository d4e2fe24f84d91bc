/* For LD_PRELOAD: a wall clock of the process's own. WALL_CLOCK names a file of one int64_t, the
   nanoseconds by which that clock is now ahead of the machine's.

   As where a clock is set, nothing else differs: CLOCK_MONOTONIC and all that waits are the
   machine's. Waits until a time of the wall clock are not translated; nothing here has any. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static const _Atomic int64_t nothing;
static const _Atomic int64_t *ahead = &nothing;
static int (*machine)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    machine = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("WALL_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) ahead = page;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = machine ? machine(clock, now) : (int)syscall(SYS_clock_gettime, clock, now);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    int64_t time = now->tv_sec * SECOND + now->tv_nsec + atomic_load(ahead);
    now->tv_sec = time / SECOND;
    now->tv_nsec = time % SECOND;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone; /* obsolete: nothing has been put there for decades */
    struct timespec time;
    int failed = clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *also) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (also) *also = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}
