rockspec_format = "3.0"
package = "sneck"
version = "0.1.0-1"
source = {
   url = "file://sneck-0.1.0.tar.gz",
}
description = {
   summary = "Token locks and compare-and-set on Redis and Valkey, as from C and Python",
   detailed = [[
A lock that many processes share through Redis or Valkey: acquire, wait, extend,
release, hand over, and ask who holds it. And compare-and-set: changes of data there
that are made only if nobody else has changed them meanwhile. Blocking, or driven by any
event loop. The pages of docs/ are installed with the rock: luarocks show --rock-dir sneck
]],
   license = "MIT",
   labels = {"lock", "redis", "valkey", "mutex", "lease", "compare-and-set"},
}
dependencies = {
   "lua >= 5.4, < 5.5",
}
-- hiredis: libhiredis-dev on Debian and Ubuntu, hiredis-devel on Fedora,
-- hiredis-dev on Alpine, hiredis with Homebrew
external_dependencies = {
   HIREDIS = {
      header = "hiredis/hiredis.h",
   },
}
build = {
   type = "builtin",
   copy_directories = {"docs", "examples"},
   modules = {
      sneck = "lua/sneck/init.lua",
      ["sneck.async"] = "lua/sneck/async.lua",
      ["sneck.async.cqueues"] = "lua/sneck/async/cqueues.lua",
      ["sneck.async.guard"] = "lua/sneck/async/guard.lua",
      ["sneck.async.loop"] = "lua/sneck/async/loop.lua",
      ["sneck.async.luv"] = "lua/sneck/async/luv.lua",
      ["sneck.async.pump"] = "lua/sneck/async/pump.lua",
      ["sneck.async.transaction"] = "lua/sneck/async/transaction.lua",
      ["sneck.async.waiting"] = "lua/sneck/async/waiting.lua",
      ["sneck.options"] = "lua/sneck/options.lua",
      ["sneck.core"] = {
         sources = {
            "bindings/lua/arguments.c",
            "bindings/lua/client.c",
            "bindings/lua/descriptor.c",
            "bindings/lua/lease.c",
            "bindings/lua/library.c",
            "bindings/lua/link.c",
            "bindings/lua/lock.c",
            "bindings/lua/module.c",
            "bindings/lua/op.c",
            "bindings/lua/poll.c",
            "bindings/lua/results.c",
            "bindings/lua/rlock.c",
            "bindings/lua/run.c",
            "bindings/lua/stay.c",
            "bindings/lua/steps.c",
            "bindings/lua/transaction.c",
            "bindings/lua/try_lock.c",
            "bindings/lua/update.c",
            "bindings/lua/wait.c",
         },
         defines = {"SNECK_STATIC"},
         incdirs = {"core/include", "core/src", "$(HIREDIS_INCDIR)"},
         libdirs = {"$(HIREDIS_LIBDIR)"},
         libraries = {"hiredis", "pthread"},
      },
   },
}
