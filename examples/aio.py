"""Let many tasks wait for one lock; however many they are, they share two connections."""

import asyncio

import sneck.aio


async def report(client: sneck.aio.Client, number: int) -> None:
    """Hold the lock while one piece of work is done; other tasks go on meanwhile."""
    # raises sneck.LockTimeout after 30 s, and sneck.NotOwned if the lock was lost meanwhile
    async with client.lock("reports:42", ttl=10, wait=30):
        print("reports:42 is ours, for task", number)
        await asyncio.sleep(0.01)


async def main() -> None:
    """Start the tasks, and wait for all of them."""
    async with sneck.aio.connect() as client:  # SNECK_URL, or else redis://localhost:6379
        await asyncio.gather(*(report(client, number) for number in range(1, 4)))


asyncio.run(main())
