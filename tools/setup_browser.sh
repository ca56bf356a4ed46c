#!/bin/sh
# Adds to the environment what the browser tests need: tools/setup_browser.sh [FOLDER], by default .venv.
# The browser is the system's Chromium, installed from Debian's packages where it is missing and one is root.
set -eu

cd "$(dirname "$0")/.."
venv=${1:-.venv}

fail() {
    printf 'labkit: %s\n' "$@" >&2
    exit 1
}

if ! command -v chromium >/dev/null; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
        fail "the browser tests need Chromium. Install it as root: apt-get install chromium"
    echo "labkit: installing Debian's chromium (a minute or two)"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends \
        chromium fonts-dejavu-core >/dev/null ||
        fail "apt-get could not install chromium (its own message is above)."
fi

"$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check \
    --constraint constraints.txt playwright ||
    fail "pip could not install playwright (its own message is above). Check the network, then run this again."
