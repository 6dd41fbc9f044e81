"""Tool calls observed from outside: traces, a recording proxy, and one merger of what several saw."""
