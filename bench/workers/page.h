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

struct page {
    uint64_t end_ns;  /* of the round, by the monotonic clock */
    uint64_t section_us;
    uint64_t inside;  /* who is in the section: its index + 1, or 0 */
    uint64_t owner;   /* who was last */
    uint64_t changes; /* of owner */
    uint64_t changes_in_time;
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

/* Counts a task that was begun then and is done now; false: the round is over. */
static inline bool page_count(struct page *page, size_t index, uint64_t begun_ns)
{
    struct tally *tally = &page->tallies[index];
    uint64_t now_ns = page_now();
    bool in_time = now_ns < page->end_ns;

    tally->count += in_time;
    if (tally->longest_ns < now_ns - begun_ns)
        tally->longest_ns = now_ns - begun_ns;
    return in_time;
}

/* In the section, for one who asked for the lock then; false: the round is over. */
static inline bool page_hold(struct page *page, size_t index, uint64_t asked_ns)
{
    struct timespec section = {0, (long)page->section_us * 1000};

    if (page->inside)
        give_up("two hold the lock");
    page->inside = index + 1;
    bool in_time = page_count(page, index, asked_ns);
    if (page->owner != index + 1) {
        page->owner = index + 1;
        page->changes++;
        page->changes_in_time += in_time;
    }
    if (section.tv_nsec)
        nanosleep(&section, NULL);
    if (page->inside != index + 1)
        give_up("two hold the lock");
    page->inside = 0;
    return in_time;
}

#endif /* PAGE_H */
