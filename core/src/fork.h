#ifndef SNECK_FORK_H
#define SNECK_FORK_H

/* Counts the forks that this process descends from since the library was first
 * used: what was made under another count belongs to the parent. */
unsigned sneck__fork_count(void);

#endif
