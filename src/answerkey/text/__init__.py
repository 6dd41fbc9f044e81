"""Pure functions over untrusted text: matching, detection, normalisation, sanitising. Imports nothing of ours but `errors`."""
