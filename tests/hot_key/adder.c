/* Adds 1 to the number at a key, many times, without a lock.
 *
 *     adder URL KEY TIMES
 *
 * Prints "ready", waits for a line on stdin, and prints the most attempts that one
 * addition took, and the number that the last one wrote. */
#include <sneck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct number {
    char text[24];
};

static int add_one(sneck_change *change, const void *old, size_t old_len, void *data)
{
    struct number *number = data;
    (void)old_len; /* a NUL stands behind it */
    int len = snprintf(number->text, sizeof number->text, "%ld",
                       old ? strtol(old, NULL, 10) + 1 : 1);
    *change = (sneck_change){SNECK_SET, number->text, (size_t)len};
    return SNECK_OK;
}

int main(int argc, char **argv)
{
    sneck_client *client = NULL;
    sneck_tx_options options = SNECK_TX_OPTIONS;
    sneck_tx_report report;
    struct number number = {"0"};
    char error[SNECK_ERROR_SIZE];
    int most = 0;

    options.wait_ms = SNECK_FOREVER;
    options.report = &report;
    if (argc != 4 || sneck_client_new(&client, argv[1], NULL, error) != SNECK_OK)
        return 2;
    puts("ready");
    fflush(stdout);
    getchar();
    for (long times = strtol(argv[3], NULL, 10); times > 0; times--) {
        if (sneck_update(client, argv[2], strlen(argv[2]), 0, &options, add_one, &number,
                         error) != SNECK_OK) {
            fprintf(stderr, "%s\n", error);
            return 1;
        }
        if (report.attempts > most)
            most = report.attempts;
    }
    printf("%d %s\n", most, number.text);
    sneck_client_free(client);
    return 0;
}
