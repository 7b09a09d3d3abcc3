/* casefile.c - cuts a file of cases into titles, attributes and steps.
 *
 * Steps stay text here: words depend on variables, which are known when the step
 * is run. Invariant: every line that is not blank or a comment belongs to a case.
 */
#include "casefile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *grow(void *items, size_t count, size_t size)
{
    if (count & (count - 1))
        return items;
    void *grown = realloc(items, (count ? 2 * count : 1) * size);
    if (!grown)
        abort();
    return grown;
}

static char *copy(const char *text)
{
    char *copied = strdup(text);
    if (!copied)
        abort();
    return copied;
}

static void add_step(struct step **steps, size_t *count, int line, const char *text)
{
    *steps = grow(*steps, *count, sizeof **steps);
    (*steps)[(*count)++] = (struct step){line, copy(text)};
}

static void add_case(struct case_file *file, const char *title)
{
    file->cases = grow(file->cases, file->count, sizeof *file->cases);
    file->cases[file->count++] = (struct test_case){.title = copy(title)};
}

static void take_line(struct case_file *file, int number, const char *text)
{
    struct test_case *last = file->count ? &file->cases[file->count - 1] : NULL;
    const char *begin = text + strspn(text, " \t");
    if (!*begin || *begin == '#')
        return;
    if (strncmp(text, "== ", 3) == 0) {
        add_case(file, text + 3);
    } else if (!last || (*text == ':' && last->step_count)) {
        fprintf(stderr, "%s:%d: outside of its place: %s\n", file->path, number, text);
        exit(2);
    } else if (*text == ':') {
        add_step(&last->attributes, &last->attribute_count, number, text + 1);
    } else {
        add_step(&last->steps, &last->step_count, number, text);
    }
}

void case_file_read(struct case_file *out, const char *path)
{
    FILE *stream = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    if (!stream) {
        perror(path);
        exit(2);
    }
    *out = (struct case_file){.path = path};
    for (int number = 1; (len = getline(&line, &room, stream)) >= 0; number++) {
        if (len > 0 && line[len - 1] == '\n')
            line[len - 1] = '\0';
        take_line(out, number, line);
    }
    free(line);
    fclose(stream);
}

static void free_steps(struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(steps[i].text);
    free(steps);
}

void case_file_clear(struct case_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        free_steps(file->cases[i].attributes, file->cases[i].attribute_count);
        free_steps(file->cases[i].steps, file->cases[i].step_count);
        free(file->cases[i].title);
    }
    free(file->cases);
}
