#ifndef RUNNER_CASEFILE_H
#define RUNNER_CASEFILE_H

#include <stddef.h>

struct step {
    int line;
    char *text;
};

struct test_case {
    char *title;
    struct step *attributes;
    struct step *steps;
    size_t attribute_count, step_count;
};

struct case_file {
    const char *path;
    struct test_case *cases;
    size_t count;
};

/* Reads a file; ends the process with a message when it cannot be understood. */
void case_file_read(struct case_file *out, const char *path);
void case_file_clear(struct case_file *file);

#endif
