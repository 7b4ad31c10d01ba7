"""`python -m acklog` is the command `acklog`."""

import sys

from acklog.cli.main import main

if __name__ == '__main__':
    sys.exit(main())
