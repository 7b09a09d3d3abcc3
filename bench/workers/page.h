/* page.h - the page that the workers of a group share: a file that all of them map.
 * A worker writes to its own tally, and to the rest only while it holds the lock that
 * they contend for, so the page needs no other protection. bench/page.py has the same
 * layout. */
#ifndef PAGE_H
#define PAGE_H

#define _POSIX_C_SOURCE 200809L /* clock_gettime, nanosleep; so this comes first */

#include "rounds.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct tally {
    uint64_t count;      /* how often a worker did its task in time */
    uint64_t longest_ns; /* its longest one, from its begin on */
};

/* Times are counted by their five most significant bits: within 3 % of what they are. */
#define PAGE_FINE_BITS 4
#define PAGE_BUCKETS (64 << PAGE_FINE_BITS)

struct page {
    uint64_t end_ns;  /* of the round, by the monotonic clock */
    uint64_t section_us;
    uint64_t inside;  /* who is in the section: its index + 1, or 0 */
    uint64_t owner;   /* who was last */
    uint64_t changes; /* of owner */
    uint64_t changes_in_time;
    uint64_t left_ns; /* when who was last left the section; 0: nobody yet */
    uint64_t handovers[PAGE_BUCKETS]; /* changes in time, by how long ago the last one left */
    struct tally tallies[];
};

static inline struct page *page_open(const char *path)
{
    struct stat file;
    int fd = open(path, O_RDWR);

    if (fd < 0 || fstat(fd, &file))
        give_up("the page cannot be opened");
    void *page = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        give_up("the page cannot be mapped");
    return page;
}

static inline uint64_t page_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline size_t page_bucket(uint64_t ns)
{
    int exponent = 63 - __builtin_clzll(ns | 1);

    if (exponent < PAGE_FINE_BITS)
        return (size_t)ns;
    return ((size_t)exponent << PAGE_FINE_BITS) +
           (ns >> (exponent - PAGE_FINE_BITS) & ((1 << PAGE_FINE_BITS) - 1));
}

/* Counts a task that was begun then and is done now; false: the round is over. */
static inline bool page_count_at(struct page *page, size_t index, uint64_t begun_ns,
                                 uint64_t now_ns)
{
    struct tally *tally = &page->tallies[index];
    bool in_time = now_ns < page->end_ns;

    tally->count += in_time;
    if (tally->longest_ns < now_ns - begun_ns)
        tally->longest_ns = now_ns - begun_ns;
    return in_time;
}

static inline bool page_count(struct page *page, size_t index, uint64_t begun_ns)
{
    return page_count_at(page, index, begun_ns, page_now());
}

static inline void page_change(struct page *page, size_t index, uint64_t now_ns, bool in_time)
{
    page->owner = index + 1;
    page->changes++;
    page->changes_in_time += in_time;
    if (in_time && page->left_ns)
        page->handovers[page_bucket(now_ns - page->left_ns)]++;
}

/* In the section, for one who asked for the lock then; false: the round is over. */
static inline bool page_hold(struct page *page, size_t index, uint64_t asked_ns)
{
    struct timespec section = {0, (long)page->section_us * 1000};
    uint64_t now_ns = page_now();

    if (page->inside)
        give_up("two hold the lock");
    page->inside = index + 1;
    bool in_time = page_count_at(page, index, asked_ns, now_ns);
    if (page->owner != index + 1)
        page_change(page, index, now_ns, in_time);
    if (section.tv_nsec)
        nanosleep(&section, NULL);
    if (page->inside != index + 1)
        give_up("two hold the lock");
    page->inside = 0;
    page->left_ns = page_now();
    return in_time;
}

#endif /* PAGE_H */
