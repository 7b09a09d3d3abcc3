#ifndef SNECK_FORK_H
#define SNECK_FORK_H

/* Counts the forks that this process descends from since the library was first
 * used: what was made under another count belongs to the parent. */
unsigned sneck__fork_count(void);

/* A child closes its copies of the sockets noted here, and must not close them
 * again. `forget` comes before the socket is closed. */
void sneck__fork_note(int fd);
void sneck__fork_forget(int fd);

#endif
