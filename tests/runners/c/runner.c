/* runner.c - runs the cases of the corpus against the C API and prints how they went.
 *
 * What it reads and prints stands in tests/corpus/README.md. Invariant: a case
 * starts on a server reset by the control socket, with no actor left over.
 */
#include "actor.h"
#include "casefile.h"
#include "outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACTORS_MAX 8
#define CONTROL_TIMEOUT_MS 60000
#define SERVERS_MAX 5
#define UNTIL_TRIES 1000      /* with pauses of 10 ms */

struct settings {
    const char *socket, *address, *proxy, *cluster, *servers, *control, *redis;
    const struct driver *driver;
    bool titles;
};

struct run {
    const struct settings *settings;
    struct variables variables;
    struct actor actors[ACTORS_MAX];
    size_t actor_count;
    struct actor control;        /* `fault`, `server`, BEGIN */
    struct actor plain;          /* `redis` */
    size_t server_count;         /* of a quorum; 0: the case has one server */
    struct actor each[SERVERS_MAX]; /* `redis1`, ... */
};

static struct actor make_actor(const char *name, const struct driver *driver)
{
    struct actor actor = {.driver = driver};
    snprintf(actor.name, sizeof actor.name, "%s", name);
    return actor;
}

static struct actor *find_actor(struct run *run, const char *name)
{
    for (size_t i = 0; i < run->actor_count; i++)
        if (strcmp(run->actors[i].name, name) == 0)
            return &run->actors[i];
    if (run->actor_count == ACTORS_MAX)
        return NULL;
    run->actors[run->actor_count] = make_actor(name, run->settings->driver);
    run->actors[run->actor_count].servers = run->settings->servers;
    run->actors[run->actor_count].server_count = run->server_count;
    return &run->actors[run->actor_count++];
}

/* ------------------------------------------------------------- the own actors */

static void execute(struct actor *actor, const struct words *command, size_t count,
                    const struct variables *v, struct words *outcome)
{
    struct words step = {0};
    words_add_keyword(&step, "own:");
    words_add_keyword(&step, "execute");
    for (size_t i = 0; i < count; i++)
        words_add_bytes(&step, command->at[i].bytes.at, command->at[i].bytes.len);
    actor_run(actor, &step, step.count, v, false, outcome);
    words_clear(&step);
}

static void connect_control(struct run *run)
{
    struct words outcome = {0};
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    options.io_timeout_ms = CONTROL_TIMEOUT_MS;
    run->control = make_actor("control", run->settings->driver);
    if (!actor_connect(&run->control, run->settings->control, &options, &outcome)) {
        fprintf(stderr, "no control socket at %s\n", run->settings->control);
        exit(2);
    }
    words_clear(&outcome);
}

/* Sends VERB and the arguments to the control socket. */
static void control(struct run *run, const char *verb, const struct word *arguments,
                    size_t count, struct words *outcome)
{
    struct words command = {0};
    words_add_keyword(&command, verb);
    for (size_t i = 0; i < count; i++)
        words_add_bytes(&command, arguments[i].bytes.at, arguments[i].bytes.len);
    execute(&run->control, &command, command.count, &run->variables, outcome);
    words_clear(&command);
}

static void reset(struct run *run)
{
    struct words outcome = {0}, five = {0};
    words_add_keyword(&five, "servers");
    control(run, "BEGIN", five.at, run->server_count > 0, &outcome);
    words_clear(&five);
    if (!word_is(&outcome.at[0], "ok")) {
        fprintf(stderr, "the server cannot be reset\n");
        exit(2);
    }
    words_clear(&outcome);
}

/* ----------------------------------------------------------------------- steps */

/* The words left of `->`. */
static size_t count_left(const struct words *words)
{
    size_t n = 0;
    while (n < words->count && !word_is(&words->at[n], "->"))
        n++;
    return n;
}

/* The calls left waiting go on meanwhile, so it is the control socket that sleeps. */
static const char *pass_time(struct run *run, const struct word *ms)
{
    struct words outcome = {0};
    control(run, "SLEEP", ms, 1, &outcome);
    bool slept = word_is(&outcome.at[0], "ok");
    words_clear(&outcome);
    return slept ? NULL : "the control socket does not sleep";
}

static const char *run_sleep(struct run *run, const struct words *words)
{
    int64_t ms;
    if (words->count != 2 || !read_number(words->at[1].bytes.at, &ms) || ms < 0)
        return "sleep is not followed by milliseconds";
    return pass_time(run, &words->at[1]);
}

/* The place of the server that `redis2:` names, from 0; -1: it is not such a word. */
static int place_of(const struct run *run, const struct word *word, const char *name)
{
    size_t len = strlen(name);
    const char *at = word->bytes.at;
    if (run->server_count == 0 || word->quoted || word->bytes.len != len + 2 ||
        memcmp(at, name, len) != 0 || at[len + 1] != ':')
        return -1;
    int place = at[len] - '1';
    return place >= 0 && place < (int)run->server_count ? place : -1;
}

static const char *run_plain(struct run *run, struct actor *actor, const struct words *words,
                             size_t left, struct words *outcome)
{
    struct words command = {.at = words->at + 1, .count = left - 1};
    execute(actor, &command, command.count, &run->variables, outcome);
    return NULL;
}

/* `redis` steps are not about what a lost connection does. */
static void renew_plain(struct run *run)
{
    for (size_t i = 0; i < run->server_count; i++) {
        actor_close(&run->each[i]);
        run->each[i] = make_actor("redis", run->settings->driver);
        run->each[i].servers = run->settings->servers;
        run->each[i].alone = i + 1;
    }
    actor_close(&run->plain);
    run->plain = make_actor("redis", run->settings->driver);
}

static const char *run_action(struct run *run, const char *verb, const struct words *words,
                              size_t most, size_t left, struct words *outcome)
{
    if (left < 2 || left > 1 + most)
        return "wrong number of arguments";
    renew_plain(run);
    control(run, verb, words->at + 1, left - 1, outcome);
    return NULL;
}

/* `redis2:`, `fault2:`, `server2:`, where the case has several servers. */
static const char *run_on_one(struct run *run, const struct words *words, size_t left,
                              bool *known, struct words *outcome)
{
    char verb[24];
    int redis = place_of(run, &words->at[0], "redis");
    int fault = place_of(run, &words->at[0], "fault");
    int server = place_of(run, &words->at[0], "server");
    *known = redis >= 0 || fault >= 0 || server >= 0;
    if (redis >= 0)
        return run_plain(run, &run->each[redis], words, left, outcome);
    snprintf(verb, sizeof verb, "%s%d", fault >= 0 ? "FAULT" : "SERVER",
             1 + (fault >= 0 ? fault : server));
    return *known ? run_action(run, verb, words, fault >= 0 ? 2 : 1, left, outcome) : NULL;
}

static const char *run_actor(struct run *run, const struct words *words, size_t left,
                             struct words *outcome)
{
    char name[32];
    size_t len = words->at[0].bytes.len;
    if (len < 2 || len > sizeof name || words->at[0].bytes.at[len - 1] != ':')
        return "not an actor";
    snprintf(name, sizeof name, "%.*s", (int)len - 1, words->at[0].bytes.at);
    struct actor *actor = find_actor(run, name);
    if (!actor || left < 2)
        return actor ? "no verb" : "too many actors";
    bool leave = word_is(&words->at[left + 1], "...");
    if (word_is(&words->at[1], "..."))
        return left == 2 ? actor_resume(actor, leave, outcome) : "wrong number of arguments";
    return actor_run(actor, words, left, &run->variables, leave, outcome);
}

static const char *run_words(struct run *run, const struct words *words, size_t left,
                             struct words *outcome)
{
    bool known;
    const char *wrong = run_on_one(run, words, left, &known, outcome);
    if (known)
        return wrong;
    if (word_is(&words->at[0], "redis:"))
        return run_plain(run, &run->plain, words, left, outcome);
    if (word_is(&words->at[0], "fault:"))
        return run_action(run, "FAULT", words, 2, left, outcome);
    if (word_is(&words->at[0], "server:"))
        return run_action(run, "SERVER", words, 1, left, outcome);
    return run_actor(run, words, left, outcome);
}

/* The step without its `until`, again until the outcome is the expected one. */
static const char *run_until(struct run *run, const struct words *words, size_t left,
                             struct words *outcome)
{
    const struct word *expected = words->at + left + 1, *verb = &words->at[2];
    size_t expected_count = words->count - left - 1;
    struct words once = {0}, pause = {0};
    const char *wrong = NULL;
    if (left < 3 || word_is(verb, "...") || verb_is_of_tx(verb) || word_is(expected, "...") ||
        word_is(&words->at[0], "fault:") || word_is(&words->at[0], "server:") ||
        place_of(run, &words->at[0], "fault") >= 0 || place_of(run, &words->at[0], "server") >= 0)
        return "until stands before a verb that may be repeated";
    once.count = words->count - 1;
    once.at = calloc(once.count, sizeof *once.at);
    if (!once.at)
        abort();
    once.at[0] = words->at[0]; /* the bytes stay the step's */
    memcpy(&once.at[1], &words->at[2], (once.count - 1) * sizeof *once.at);
    words_add_keyword(&pause, "10");
    for (int tries = UNTIL_TRIES; !wrong && tries > 0; tries--) {
        words_clear(outcome);
        wrong = run_words(run, &once, left - 1, outcome);
        if (wrong || outcome_matches(expected, expected_count, outcome, &run->variables))
            break;
        wrong = pass_time(run, pause.at);
    }
    free(once.at);
    words_clear(&pause);
    return wrong;
}

static void show_words(struct bytes *to, const struct word *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bytes_add_text(to, i ? " " : "");
        word_show(to, &words[i]);
    }
}

/* Compares what came of a step; true: as expected, else `message` says how not. */
static bool judge(struct run *run, const struct words *words, size_t left,
                  const struct words *outcome, struct bytes *message)
{
    const struct word *expected = words->at + left + 1;
    size_t count = words->count - left - 1;
    if (outcome_matches(expected, count, outcome, &run->variables))
        return true;
    bytes_add_text(message, "expected ");
    show_words(message, expected, count);
    bytes_add_text(message, " got ");
    show_words(message, outcome->at, outcome->count);
    return false;
}

static bool run_step(struct run *run, const char *text, struct bytes *message)
{
    struct words words = {0}, outcome = {0};
    const char *wrong = words_read(&words, text, &run->variables);
    size_t left = wrong ? 0 : count_left(&words);
    bool passed = false;
    if (wrong)
        goto out;
    if (word_is(&words.at[0], "sleep")) {
        wrong = run_sleep(run, &words);
        passed = !wrong;
        goto out;
    }
    wrong = left == words.count
                ? "no outcome"
                : outcome_check(words.at + left + 1, words.count - left - 1);
    if (!wrong && left > 1 && word_is(&words.at[1], "until"))
        wrong = run_until(run, &words, left, &outcome);
    else if (!wrong)
        wrong = run_words(run, &words, left, &outcome);
    if (!wrong)
        passed = judge(run, &words, left, &outcome, message);
out:
    if (wrong)
        bytes_add_text(message, wrong);
    words_clear(&words);
    words_clear(&outcome);
    return passed;
}

/* ----------------------------------------------------------------------- cases */

static bool version_reached(const char *version, const char *needed)
{
    int major, minor, needed_major, needed_minor;
    if (sscanf(version, "%d.%d", &major, &minor) != 2 ||
        sscanf(needed, "%d.%d", &needed_major, &needed_minor) != 2) {
        fprintf(stderr, "not a version: %s or %s\n", version, needed);
        exit(2);
    }
    return major > needed_major || (major == needed_major && minor >= needed_minor);
}

/* The number in `servers 5`; 0 where it is not that attribute. */
static size_t servers_of(const char *attribute)
{
    int64_t number;
    bool is = strncmp(attribute, "servers ", 8) == 0 && read_number(attribute + 8, &number) &&
              number >= 1 && number <= SERVERS_MAX;
    return is ? (size_t)number : 0;
}

/* The first attribute that is not met; NULL: none. An unknown one ends the run. */
static const char *unmet(const struct settings *settings, const struct test_case *c)
{
    for (size_t i = 0; i < c->attribute_count; i++) {
        const char *text = c->attributes[i].text;
        bool met;
        if (strcmp(text, "tcp") == 0) {
            met = settings->address != NULL;
        } else if (strncmp(text, "redis ", 6) == 0) {
            met = version_reached(settings->redis, text + 6);
        } else if (servers_of(text) > 0) {
            met = settings->servers != NULL;
        } else {
            fprintf(stderr, "unknown attribute: %s\n", text);
            exit(2);
        }
        if (!met)
            return text;
    }
    return NULL;
}

static void begin_case(struct run *run, const struct test_case *c)
{
    const struct settings *s = run->settings;
    run->server_count = 0;
    for (size_t i = 0; i < c->attribute_count; i++)
        run->server_count += servers_of(c->attributes[i].text);
    reset(run);
    renew_plain(run);
    variable_bind(&run->variables, "socket", s->socket, strlen(s->socket));
    variable_bind(&run->variables, "proxy", s->proxy, strlen(s->proxy));
    if (s->cluster)
        variable_bind(&run->variables, "cluster", s->cluster, strlen(s->cluster));
    if (s->address)
        variable_bind(&run->variables, "address", s->address, strlen(s->address));
}

/* Ends what is left. False: a call was still waiting, or a transaction open. */
static bool end_case(struct run *run)
{
    bool waiting = false, open = false;
    for (size_t i = 0; i < run->actor_count; i++) {
        waiting |= run->actors[i].waiting != NULL;
        open |= run->actors[i].session != NULL;
    }
    if (waiting)
        reset(run); /* so that every lock is free, and the waiters end */
    for (size_t i = 0; i < run->actor_count; i++)
        if (!actor_close(&run->actors[i])) {
            fprintf(stderr, "a call does not end\n");
            exit(2);
        }
    for (size_t i = 0; i < run->server_count; i++)
        actor_close(&run->each[i]);
    actor_close(&run->plain);
    run->actor_count = 0;
    variables_clear(&run->variables);
    return !waiting && !open;
}

static bool run_case(struct run *run, const char *path, const struct test_case *c)
{
    const char *excuse = unmet(run->settings, c);
    struct bytes message = {0};
    bool passed = c->step_count > 0;
    int line = 0;
    if (excuse) {
        printf("excused %s: %s\n", c->title, excuse);
        return true;
    }
    begin_case(run, c);
    for (size_t i = 0; i < c->step_count && passed; i++) {
        line = c->steps[i].line;
        passed = run_step(run, c->steps[i].text, &message);
    }
    if (!end_case(run) && passed) {
        bytes_add_text(&message, "the case ends while a call is waiting, or a transaction open");
        passed = false;
    }
    if (passed)
        printf("ok %s\n", c->title);
    else
        printf("failed %s: %s:%d %s\n", c->title, path, line, message.at ? message.at : "no steps");
    fflush(stdout);
    free(message.at);
    return passed;
}

static bool run_file(struct run *run, const char *path)
{
    struct case_file file;
    bool passed = true;
    case_file_read(&file, path);
    for (size_t i = 0; i < file.count; i++) {
        if (run->settings->titles)
            puts(file.cases[i].title);
        else
            passed &= run_case(run, path, &file.cases[i]);
    }
    case_file_clear(&file);
    return passed;
}

/* ------------------------------------------------------------------------ main */

static void usage(void)
{
    fputs("usage: corpus_runner --titles FILE...\n"
          "       corpus_runner --mode blocking|stepped --socket PATH [--address HOST:PORT]\n"
          "                     --proxy PATH [--cluster PATH] [--servers DIRECTORY] --control URL --redis VERSION\n"
          "                     FILE...\n", stderr);
    exit(2);
}

static void set_option(struct settings *s, const char *name, const char *value)
{
    if (strcmp(name, "--socket") == 0)
        s->socket = value;
    else if (strcmp(name, "--address") == 0)
        s->address = value;
    else if (strcmp(name, "--proxy") == 0)
        s->proxy = value;
    else if (strcmp(name, "--cluster") == 0)
        s->cluster = value;
    else if (strcmp(name, "--servers") == 0)
        s->servers = value;
    else if (strcmp(name, "--control") == 0)
        s->control = value;
    else if (strcmp(name, "--redis") == 0)
        s->redis = value;
    else if (strcmp(name, "--mode") == 0 && strcmp(value, "blocking") == 0)
        s->driver = &blocking_driver;
    else if (strcmp(name, "--mode") == 0 && strcmp(value, "stepped") == 0)
        s->driver = &stepped_driver;
    else
        usage();
}

/* Reads the options and returns the place of the first file. */
static int read_options(struct settings *s, int argc, char **argv)
{
    int i = 1;
    while (i < argc && strncmp(argv[i], "--", 2) == 0) {
        s->titles |= strcmp(argv[i], "--titles") == 0;
        if (s->titles)
            i++;
        else if (i + 1 < argc)
            set_option(s, argv[i], argv[i + 1]), i += 2;
        else
            usage();
    }
    bool complete = s->driver && s->socket && s->proxy && s->control && s->redis;
    if (i == argc || (!s->titles && !complete))
        usage();
    return i;
}

int main(int argc, char **argv)
{
    struct settings settings = {0};
    static struct run run;
    bool passed = true;
    int i = read_options(&settings, argc, argv);
    run.settings = &settings;
    if (!settings.titles)
        connect_control(&run);
    for (; i < argc; i++)
        passed &= run_file(&run, argv[i]);
    actor_close(&run.control);
    return passed ? 0 : 1;
}
