"""Hold a lock while one piece of work is done."""

import sneck

client = sneck.connect()  # SNECK_URL, or else redis://localhost:6379

# raises sneck.LockTimeout after 30 s, and sneck.NotOwned if the lock was lost meanwhile
with client.lock("reports:42", ttl=10, wait=30):
    print("reports:42 is ours")
