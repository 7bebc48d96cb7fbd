#!/bin/sh
# Run plait on an emulated Arm processor: the tests of lanes, and golden command lines, with the vectors of
# 128 bits (NEON) that Numba makes machine code for there. Slow: every kernel is compiled under the emulator.
#
#     sh tools/try_aarch64.sh [COMMAND ...]     # such as: sh tools/try_aarch64.sh align "hsi compress"
#
# For Debian on x86-64, as root: QEMU, and Python 3.11 and its libraries for Arm, come from its packages, and
# wheels from PyPI. All of it lies in build/aarch64.
set -eu
cd "$(dirname "$0")/.."
place="$PWD/build/aarch64"
root="$place/root"
mkdir -p "$place/lists/partial" "$place/debs" "$root"
touch "$place/status"
apt="-oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::Lists=$place/lists -oDir::State::status=$place/status"

if [ ! -e "$root/usr/bin/python3.11" ]; then
    apt-get install -y -qq qemu-user-static
    # shellcheck disable=SC2086
    apt-get $apt update -qq
    # shellcheck disable=SC2086
    (cd "$place/debs" && apt-get $apt download -qq python3.11-minimal libpython3.11-minimal libpython3.11-stdlib \
        libc6 libgcc-s1 libstdc++6 zlib1g libexpat1 libssl3 libbz2-1.0 liblzma5 libffi8 libuuid1 libgomp1 libatomic1)
    for package in "$place"/debs/*.deb; do dpkg -x "$package" "$root"; done
fi
if [ ! -d "$place/site" ]; then
    python3 -m pip install -q --no-compile --target "$place/site" --python-version 3.11 --only-binary=:all: \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
        cyclopts numba "numpy<2.5" pyarrow rich isal pytest pytest-benchmark pytest-xdist hypothesis
fi
# Other processes that plait starts are emulated too where the system lets it.
[ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc || true
[ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] || printf '%s' ':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F' \
    > /proc/sys/fs/binfmt_misc/register || true

export QEMU_LD_PREFIX="$root" QEMU_CPU=max PYTHONHOME="$root/usr"
export PYTHONPATH="$PWD/src:$PWD/tests:$place/site" PLAIT_CACHE_DIR="$place/cache"
emulated="qemu-aarch64-static $root/usr/bin/python3.11"
$emulated -m pytest -q -p no:cacheprovider tests/unit/test_lanes.py
$emulated tests/golden/make_command_outputs.py --compare "$@"
