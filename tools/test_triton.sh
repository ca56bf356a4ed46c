#!/bin/sh
# Runs the emulator's tests on another release of Triton: tools/test_triton.sh VENV RELEASE.
# The release is unpacked in build/, beside the environment, which stays as it is; Python finds it first.
set -eu

cd "$(dirname "$0")/.."
python=$1/bin/python
release=$2
folder=build/triton-$release

if [ ! -e "$folder/.unpacked" ]; then
    rm -rf "$folder"
    echo "labkit: unpacking triton $release in $folder"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder" "triton==$release"
    touch "$folder/.unpacked"
fi

# A cache of its own, so that no run finds what another release compiled.
export PYTHONPATH="$PWD/$folder" TRITON_CACHE_DIR="$PWD/$folder-cache"
"$python" -c "import triton; assert triton.__version__ == '$release', triton"
# Tests of single instructions compile nothing, so that no release of Triton changes them.
"$python" -m pytest --ignore-glob='*_instructions.py' --ignore-glob='*/test_matrix_*.py' tests/emulator tests/third_party
