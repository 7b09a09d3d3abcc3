"""Hold a lock on several servers, of which a majority must agree.

python quorum.py redis://one redis://two redis://three
"""

import sys

import sneck

client = sneck.quorum(sys.argv[1:])

try:
    with client.lock("reports:42", ttl=10, wait=30) as lock:
        print(f"reports:42 is ours for {lock.remaining():.1f} s, at {len(client.servers)} servers")
except sneck.QuorumImpossible as error:
    for address, reason in error.servers.items():
        print(f"{address}: {reason}", file=sys.stderr)
    sys.exit(1)
