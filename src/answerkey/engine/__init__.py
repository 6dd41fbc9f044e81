"""Engines: how many questions get asked. `local` is asyncio in one process."""
