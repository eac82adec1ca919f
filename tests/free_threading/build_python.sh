#!/usr/bin/env bash
# Builds a free-threaded CPython from Debian's source package, unless it is there, and prints the path of its interpreter.
#
#   build_python.sh [plain|tsan]
#
# With tsan the interpreter itself is instrumented for ThreadSanitizer, to which its locks are invisible otherwise.
# Environment: PYTHON_SERIES (3.13), DEBIAN_SUITES (trixie sid), JOBS (2) and FREE_THREADING_CACHE, where builds stay.
# Needs apt with a Debian mirror, dpkg-source, a C compiler, and the headers of OpenSSL, libffi, zlib, bzip2 and lzma.
set -euo pipefail

series=${PYTHON_SERIES:-3.13}
suites=${DEBIAN_SUITES:-trixie sid}
cache=${FREE_THREADING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kafka-msgs/free-threading}
kind=${1:-plain}
options=(--disable-gil --without-ensurepip --disable-test-modules)
if [ "$kind" = tsan ]; then
    options+=(--with-thread-sanitizer)
fi
prefix=$cache/$series-$kind
python=$prefix/bin/python${series}t

# Source packages of other suites, from the mirror that apt uses, with lists of their own: the machine's stay as they are.
apt_of_suite() {
    local suite=$1 mirror
    shift
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' | sed -n 's/^Debian //p' | grep -v -- -security | head -n 1)
    mkdir -p "$work/$suite/lists/partial"
    echo "deb-src $mirror $suite main" > "$work/$suite/sources.list"
    set -- -o Dir::Etc::sourcelist="$work/$suite/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$work/$suite/lists" -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache= \
        -o APT::Sandbox::User= "$@"
    "${apt:-apt-get}" "$@"
}

# Debian's patches are left out: they put packages elsewhere. An index may be newer or older than the pool beside it, so each
# version is tried, the newest first.
fetch() {
    local suite version
    for suite in $suites; do
        apt_of_suite "$suite" --quiet update
        for version in $(apt=apt-cache apt_of_suite "$suite" showsrc "python$series" | sed -n 's/^Version: //p' | sort -rVu); do
            if (cd "$work" && apt_of_suite "$suite" --quiet --download-only source "python$series=$version"); then
                dpkg-source --skip-patches --extract "$work/python${series}_${version#*:}.dsc" "$work/source"
                return
            fi
        done
    done
    echo "no suite of $suites has a source package of python$series" >&2
    return 1
}

if [ ! -x "$python" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    {
        fetch
        cd "$work/source"
        ./configure --prefix="$prefix" "${options[@]}"
        nice make -j"${JOBS:-2}"
        rm -rf "$prefix"
        # Bytecode is compiled on import: in advance, an instrumented interpreter needs half an hour for it.
        nice make install PYTHON_FOR_BUILD=true
    } >&2
fi
echo "$python"
