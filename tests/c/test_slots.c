/* The keys beside a lock's own are in its cluster slot, whatever braces its name has. */
#include "../../core/src/companion.c"

#include "support.h"

/* As the Redis cluster specification has it (CRC16/XMODEM): by long division. */
static unsigned reference_crc(const char *bytes, size_t len)
{
    unsigned crc = 0;
    for (size_t i = 0; i < len * 8; i++) {
        unsigned bit = (unsigned)((unsigned char)bytes[i / 8] >> (7 - i % 8)) & 1;
        unsigned top = crc >> 15 & 1;
        crc = (crc << 1 & 0xffff) ^ (bit ^ top ? 0x1021 : 0);
    }
    return crc;
}

static unsigned reference_slot(const char *key, size_t len)
{
    size_t open = 0, close;
    while (open < len && key[open] != '{')
        open++;
    for (close = open + 1; close < len && key[close] != '}';)
        close++;
    if (close < len && close > open + 1)
        return reference_crc(key + open + 1, close - open - 1) & 16383;
    return reference_crc(key, len) & 16383;
}

static unsigned slot(const char *key)
{
    return sneck__slot(key, strlen(key));
}

static void the_checksum_is_that_of_the_cluster_specification(void **state)
{
    (void)state;
    assert_int_equal(crc16("123456789", 9), 0x31c3);
    assert_int_equal(reference_crc("123456789", 9), 0x31c3);
    assert_int_equal(slot("foo"), 12182);
    assert_int_equal(slot("bar"), 5061);
    assert_int_equal(slot("hello"), 866);
}

static void a_tag_is_made_for_any_slot(void **state)
{
    char tag[TAG_LEN + 1] = "";
    (void)state;
    for (unsigned i = 0; i < SLOTS; i++) {
        make_tag(tag, i);
        assert_int_equal(strspn(tag, "hijklmnopqrstuvw"), TAG_LEN);
        assert_int_equal(reference_slot(tag, TAG_LEN), i);
    }
}

static void a_tag_stands_between_the_first_braces(void **state)
{
    (void)state;
    assert_int_equal(slot("{user1000}.following"), slot("user1000"));
    assert_int_equal(slot("foo{bar}{zap}"), slot("bar"));
    assert_int_equal(slot("foo{{bar}}zap"), reference_crc("{bar", 4) & 16383);
    assert_int_equal(slot("foo{}{bar}"), reference_crc("foo{}{bar}", 10) & 16383);
    assert_int_equal(slot("}foo{"), reference_crc("}foo{", 5) & 16383);
}

static void check_name(const char *name, size_t len)
{
    struct companion queue;
    assert_true(sneck__companion(&queue, name, len, "queue"));
    assert_int_equal(reference_slot(queue.text, queue.len), reference_slot(name, len));
    assert_int_equal(strlen(queue.text), queue.len);
    free(queue.text);
}

static void a_queue_is_in_the_slot_of_its_lock(void **state)
{
    static const char *const names[] = {
        "door", "{door}", "{user:7}:mail", "a{b}c{d}", "odd}name", "}", "{", "{}", "{}{x", "}{",
        "{}x}", "{{x}}", "a{}b{c}", "{x", "x}y{z", "}{x}", "{}{}{}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_name(names[i], strlen(names[i]));
}

/* All names of up to five bytes of "{", "}" and "a". */
static void names_of_any_braces_have_their_queue_in_their_slot(void **state)
{
    (void)state;
    for (size_t len = 1, count = 3; len <= 5; len++, count *= 3)
        for (size_t n = 0; n < count; n++) {
            char name[8] = "";
            size_t rest = n;
            for (size_t i = 0; i < len; i++, rest /= 3)
                name[i] = "{}a"[rest % 3];
            check_name(name, len);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_that_of_the_cluster_specification),
        cmocka_unit_test(a_tag_is_made_for_any_slot),
        cmocka_unit_test(a_tag_stands_between_the_first_braces),
        cmocka_unit_test(a_queue_is_in_the_slot_of_its_lock),
        cmocka_unit_test(names_of_any_braces_have_their_queue_in_their_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
