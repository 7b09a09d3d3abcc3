// redlock.js NAME SOCKET...: redlock of npm, told by lines to acquire and to release.
"use strict";

const readline = require("readline");
const Redis = require("ioredis");
const Redlock = require("redlock");

const [name, ...sockets] = process.argv.slice(2);
const clients = sockets.map((path) => new Redis({path}));
const locks = new Redlock(clients, {retryCount: 0});

async function main() {
  let lock = null;
  for await (const line of readline.createInterface({input: process.stdin})) {
    if (line === "acquire") {
      lock = await locks.lock(name, 60000).catch(() => null);
      console.log(lock ? "held" : "busy");
    } else {
      await lock.unlock();
      console.log("released");
    }
  }
  clients.forEach((client) => client.disconnect());
}

main();
