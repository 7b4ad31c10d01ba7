"""Tools that show whether acklog keeps its promises; they ship with it, so that anybody can try them.

`process` runs a real server, `usage` says what a process costs, `publisher` and `subscriber` are workers that use the
stock client and keep a `diary`, `load` runs several of them, and `checker` reads the diaries and says what was lost or
delivered again after it was signed off. `crash` puts it together: `python -m acklog.testing.crash --rounds 50`.
`conformance` runs outside clients' own tests.

For the tests of those who use acklog there are `local`, a server in the test's process whose clock the test moves, and
pytest's `fixtures`.
"""
