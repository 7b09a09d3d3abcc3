# shellcheck shell=sh
# Read by the scripts beside it: how they find programs, and how they give up.
# Invariant: nothing here installs, starts or writes anything.

# what scripts/build links there comes before the system's
PATH=$PWD/build/bin:$PATH

fail() {
    echo "$0: $*" >&2
    exit 1
}

# Prints the first of the named commands that answers the check $1.
first_that() {
    check=$1
    shift
    for candidate; do
        if command -v "$candidate" >/dev/null && "$check" "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

is_new_python() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}

is_lua_5_4() {
    "$1" -e 'os.exit(_VERSION == "Lua 5.4")' >/dev/null 2>&1
}

find_python() {
    first_that is_new_python "${PYTHON:-python3}" /usr/bin/python3
}

find_lua() {
    first_that is_lua_5_4 lua5.4 lua-5.4 lua54 lua
}

# $1 is redis or valkey. Debian's tools package holds the server under the name
# of its file checker: one program, which looks at the name it is called by.
find_server() {
    first_that true "$1-server" "$1-check-rdb"
}

brew_prefix() {
    brew --prefix "$1" 2>/dev/null || echo /usr/local
}

# Lets programs started from here find the rock in build/rock.
use_rock() {
    export LUA_PATH="$PWD/build/rock/share/lua/5.4/?.lua;$PWD/build/rock/share/lua/5.4/?/init.lua;;"
    export LUA_CPATH="$PWD/build/rock/lib/lua/5.4/?.so;;"
}
