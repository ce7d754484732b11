/* mxop_crowded.h - whether other programs want the processors that our threads run on.

   A call that is shared by threads ends when the last of them has had its turn.  Where programs wait for processors, that takes
   until the system gives it one: some milliseconds, for what one thread does in some microseconds.  The system counts how
   often it took a processor away from this process; where that happens all the time, small calls are better done by one thread.
   Results do not depend on it: they have the same bits with any number of threads. */
#ifndef MXOP_CROWDED_H
#define MXOP_CROWDED_H

#if defined(_WIN32)
static int mx_crowded(void) { return 0; }
#else
#include <sys/resource.h>
#include <time.h>

enum { MX_ASKED = 16, MX_PAUSE = 20000000, MX_OFTEN = 100 };   /* calls between looks; nanoseconds; losses a second */

static int mx_crowded(void)
{
    static int asked = 0, crowded = 0;      /* races between threads change who looks, no more */
    static long long last = 0;
    static long lost = 0;
    struct timespec now;
    struct rusage used;
    long long time;
    if (++asked % MX_ASKED)
        return crowded;
    clock_gettime(CLOCK_MONOTONIC, &now);
    time = now.tv_sec * 1000000000LL + now.tv_nsec;
    if (time - last < MX_PAUSE)
        return crowded;
    getrusage(RUSAGE_SELF, &used);
    crowded = last && (used.ru_nivcsw - lost) * 1000000000LL > MX_OFTEN * (time - last);
    lost = used.ru_nivcsw;
    last = time;
    return crowded;
}
#endif

#endif
