"""Install a lock file and this package into .venv:  python3 requirements/install.py demo|dev

Strategy: nothing is done that has been done before. A copy of the lock file inside .venv tells what is installed, so a
second run needs no network and takes no time. Every file is checked against its hash, the build backend included, and
the package itself is linked into the environment, so that a change in src/ works at once.

Written for any Python from 2.7 on, so that an old one is told what is missing instead of a syntax error.
"""

from __future__ import print_function

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, '.venv')
NEEDED = (3, 11)
WINDOWS = os.name == 'nt'
PYTHON = os.path.join(VENV, 'Scripts', 'python.exe') if WINDOWS else os.path.join(VENV, 'bin', 'python')
SETS = ('demo', 'dev')  # each contains the one before


def cure(what):
    """How to get what is missing, for this system."""
    if WINDOWS:
        return (
            'install Python 3.11 or newer from python.org (it brings venv and pip), then run: py %s\n'
            '(on Windows acklog is for clients only: the server needs Linux, or macOS for development)'
            % ' '.join(sys.argv)
        )
    if sys.platform == 'darwin':
        return 'install Python 3.11 or newer, for example with "brew install python", then run this again'
    if what == 'venv':
        version = '%d.%d' % sys.version_info[:2]
        return (
            'on Debian or Ubuntu "apt install python%s-venv" (or python3-venv); elsewhere the package of your\n'
            'system that holds the modules venv and ensurepip of Python %s. Then run this again' % (version, version)
        )
    return (
        'install Python 3.11 or newer with its venv module (Debian 12, Ubuntu 24.04 and newer:\n'
        '"apt install python3 python3-venv"); if it is there under another name: make PYTHON=python3.12 venv'
    )


def stop(message, what='python'):
    sys.exit('acklog: %s.\nCure: %s.' % (message, cure(what)))


def check_python():
    if sys.version_info < NEEDED:
        stop('Python 3.11 or newer is needed, this one (%s) is %s' % (sys.executable, sys.version.split()[0]))
    try:
        import ensurepip
        import venv

        assert ensurepip and venv
    except ImportError as error:
        stop('Python at %s has no %s module' % (sys.executable, error.name), 'venv')


def works(*command):
    with open(os.devnull, 'w') as nowhere:
        try:
            return subprocess.call([PYTHON] + list(command), stdout=nowhere, stderr=nowhere) == 0
        except OSError:
            return False


def make_venv():
    """Make .venv, unless a usable one is there; one that does not work is named, never removed."""
    if not os.path.exists(VENV):
        print('making .venv with Python %s' % sys.version.split()[0])
        if subprocess.call([sys.executable, '-m', 'venv', VENV]):
            stop('the virtual environment could not be made', 'venv')
    if not works('-c', 'import sys; sys.exit(sys.version_info < (%d, %d))' % NEEDED):
        sys.exit(
            'acklog: .venv is there, but its Python does not run or is older than %d.%d (folder moved?).\n'
            'Cure: remove the folder .venv ("make clean-venv") and run this again.' % NEEDED
        )
    if not works('-m', 'pip', '--version') and not works('-m', 'ensurepip'):
        stop('.venv has no pip and cannot get it', 'venv')


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, 'rb') as file:
        return file.read()


def write(path, data):
    with open(path, 'wb') as file:
        file.write(data)


def stamp(name):
    return os.path.join(VENV, 'installed-%s' % name)


def pip(*arguments):
    command = [PYTHON, '-m', 'pip', '--disable-pip-version-check', '--quiet', 'install'] + list(arguments)
    if subprocess.call(command, cwd=ROOT):
        sys.exit(
            'acklog: pip failed, see above. The first installation needs a package index; later runs need none.\n'
            "Cure: check the network or pip's configuration, then run this again."
        )


def install(name):
    lock = read(os.path.join(ROOT, 'requirements', name + '.txt'))
    if read(stamp(name)) != lock:
        print('installing requirements/%s.txt' % name)
        pip('--require-hashes', '-r', os.path.join('requirements', name + '.txt'))
        for smaller in SETS[: SETS.index(name)]:
            write(stamp(smaller), read(os.path.join(ROOT, 'requirements', smaller + '.txt')))
        write(stamp(name), lock)
    project = ROOT.encode() + b'\n' + read(os.path.join(ROOT, 'pyproject.toml'))
    if read(stamp('project')) != project:
        pip('--no-deps', '--no-build-isolation', '--editable', '.')
        write(stamp('project'), project)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in SETS:
        sys.exit(__doc__)
    check_python()
    make_venv()
    install(sys.argv[1])


main()
