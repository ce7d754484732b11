/* mxop_team.h - which tasks a thread does: its own, neighbours, then what others have left. */
#ifndef MXOP_TEAM_H
#define MXOP_TEAM_H

#include <stddef.h>

#define MX_SHARES 64

/* The tasks of one thread; more threads than there is room for have tasks together. */
typedef struct {
    ptrdiff_t begin, count;
    ptrdiff_t taken;        /* more, once all are */
    char apart[128 - 3 * sizeof(ptrdiff_t)];    /* one thread's counting disturbs no other's */
} mx_share;

typedef struct {
    int n, back, own;
    mx_share of[MX_SHARES];
} mx_shares;

/* Deal tasks out: what a thread did the last time is still in its core's cache.  They are done from the last where `back`, and by
 * nobody else where they are each thread's `own`. */
static inline void mx_share_out(mx_shares *shares, ptrdiff_t tasks, int threads, int back, int own)
{
    const int n = threads < MX_SHARES ? threads : MX_SHARES;
    shares->n = n;
    shares->back = back;
    shares->own = own;
    for (int k = 0; k < n; k++) {
        mx_share *s = &shares->of[k];
        s->begin = tasks / n * k + tasks % n * k / n;
        s->count = tasks / n * (k + 1) + tasks % n * (k + 1) / n - s->begin;
        s->taken = 0;
    }
}

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#define MX_TAKEN(s) (*(volatile ptrdiff_t *)&(s)->taken)
#define MX_TAKE(s) ((ptrdiff_t)_InterlockedExchangeAdd64((volatile long long *)&(s)->taken, 1))
#else
#define MX_TAKEN(s) __atomic_load_n(&(s)->taken, __ATOMIC_RELAXED)
#define MX_TAKE(s) __atomic_fetch_add(&(s)->taken, 1, __ATOMIC_RELAXED)
#endif

/* Return the next task of a thread, or -1 when there is none: one whose core is busy with something else is helped. */
static inline ptrdiff_t mx_next_task(mx_shares *shares, int thread)
{
    const int asked = shares->own ? 1 : shares->n;
    for (int k = 0; k < asked; k++) {
        mx_share *s = &shares->of[(thread + k) % shares->n];
        if (MX_TAKEN(s) < s->count) {
            const ptrdiff_t at = MX_TAKE(s);
            if (at < s->count) return s->begin + (shares->back ? s->count - 1 - at : at);
        }
    }
    return -1;
}

#endif
