#!/bin/sh
# Installs what the tests' real servers, the fault tools, the browser and Spark need, if it is missing; with the argument
# `java`, only what Spark needs; with `demo`, Spark and PostgreSQL. Safe to run again and again.
set -eu

wanted="${1:-everything}"
packages=""

need() { # need COMMAND PACKAGE: the package, unless the command is there
    command -v "$1" >/dev/null 2>&1 || packages="$packages $2"
}

if [ ! -x "${JAVA_HOME:-}/bin/java" ]; then
    need java openjdk-17-jre-headless
fi
if [ "$wanted" != java ]; then
    # Debian keeps the PostgreSQL server off the PATH, in a directory per version.
    set -- /usr/lib/postgresql/*/bin/postgres
    if [ ! -x "$1" ] && ! command -v postgres >/dev/null 2>&1; then
        # Only the server: no cluster of the system's own is wanted.
        packages="$packages postgresql"
    fi
fi
if [ "$wanted" = everything ]; then
    need curl curl
    need jq jq
    need kcat kcat
    need strace strace
    need faketime faketime
    need ip iproute2
    need chromium "chromium fonts-dejavu-core"
    need promtool prometheus
fi

if [ -z "$packages" ]; then
    exit 0
fi

if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing:$packages" >&2
    echo "there is no apt-get here: install these with your system's package manager, then run this again" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "missing:$packages" >&2
    echo "run this as root, or: sudo apt-get install$packages" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
# Two `make test` beside each other on a new machine take turns.
exec 9</var/lib/apt
flock 9
apt-get update -q
# Releases after Debian 12 have newer ones instead, which Spark runs on as well.
if ! apt-cache show openjdk-17-jre-headless >/dev/null 2>&1; then
    packages=$(echo "$packages" | sed 's/openjdk-17-jre-headless/default-jre-headless/')
fi
echo "installing$packages"
# shellcheck disable=SC2086 # the list is to be split
apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=600 $packages
