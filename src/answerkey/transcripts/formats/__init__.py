"""The response and transcript formats that are recognised without configuration, one file each."""
