"""One measurement per file.

`measure(target)` runs in a client process of its own (bench/client.py) against a running server and returns figures
by name (bench/figures.py). `measure_server(factory, scale)` runs in the benchmark's own process, because it starts and
kills servers. `target.records(n)` is n, or less in a quick run, as `scale` says.
"""
