#!/bin/sh
# Makes the environment that the Makefile uses: tools/setup.sh [FOLDER], by default .venv.
# PYTHON=... chooses the interpreter. Where that one already has torch or triton (a ROCm or CUDA
# image, a conda environment), they are used as they are and only what is missing is installed.
set -eu

cd "$(dirname "$0")/.."
venv=${1:-.venv}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    printf 'labkit: %s\n' "$@" >&2
    exit 1
}

supported() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))' 2>/dev/null
}

# python3 comes first: on an image it is the one that has torch.
choose_python() {
    for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.10}; do
        if supported "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

has_module() { # has_module PYTHON NAME
    "$1" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$2') is None)" 2>/dev/null
}

make_venv() { # make_venv PYTHON inherit|alone
    option=
    [ "$2" = alone ] || option=--system-site-packages
    "$1" -m venv $option "$venv" || {
        rm -rf "$venv"
        fail "Python's venv module failed. On Debian or Ubuntu install it: apt install python3-venv"
    }
    [ "$2" = alone ] || inherit_from "$1"
}

# --system-site-packages reaches the packages of the interpreter that was installed, but not those
# of a virtual environment or a user folder in which the image keeps torch: name these in a .pth file.
inherit_from() {
    "$1" - "$venv/bin/python" <<'END'
import pathlib, subprocess, sys
show = "import sys, sysconfig; print(sysconfig.get_path('purelib')); print(*sys.path, sep='\\n')"
purelib, *known = subprocess.check_output([sys.argv[1], "-c", show], text=True).splitlines()
missing = [path for path in sys.path if path.endswith("-packages") and path not in known]
pathlib.Path(purelib, "labkit_inherits.pth").write_text("".join(path + "\n" for path in missing))
END
}

# Constraints for what is not here yet; what is here is pinned to what it is, so that pip cannot
# replace torch or triton.
write_constraints() {
    "$venv/bin/python" - constraints.txt "$scratch/constraints.txt" <<'END'
import importlib.metadata, pathlib, re, sys
here = {re.sub(r"[-_.]+", "-", d.metadata["Name"]).lower(): d.version
        for d in importlib.metadata.distributions() if d.metadata["Name"]}
lines = [line for line in pathlib.Path(sys.argv[1]).read_text().splitlines() if "==" in line]
lines = [line for line in lines if re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() not in here]
lines += [f"{name}==={here[name]}" for name in ("torch", "triton") if name in here]
pathlib.Path(sys.argv[2]).write_text("\n".join(lines) + "\n")
END
}

# The requirement to install for torch or triton: what the torch that is here asks for, else our pin.
requirement() { # requirement torch|triton
    "$venv/bin/python" - "$1" <<'END'
import importlib.metadata, pathlib, re, sys
try:
    wanted = importlib.metadata.requires("torch") or []
except importlib.metadata.PackageNotFoundError:
    wanted = []
asked = [line.split(";")[0].strip() for line in wanted if re.match(r"(pytorch-)?triton\b", line)]
pins = pathlib.Path("constraints.txt").read_text().splitlines()
pin = next(line.split(";")[0] for line in pins if line.startswith(sys.argv[1] + "=="))
print(asked[0] if asked and sys.argv[1] == "triton" else pin)
END
}

install() {
    write_constraints
    "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check \
        --constraint "$scratch/constraints.txt" "$@" || fail \
        "pip could not install what labkit needs (its own message is above)." \
        "Check the network and the free disk space, then run the same command again."
}

python=$(choose_python)
[ -n "$python" ] || fail \
    "no Python from 3.10 to 3.13 found (${PYTHON:-python3} is $("${PYTHON:-python3}" --version 2>&1 || true))." \
    "Install one, or name it: make PYTHON=/path/to/python3.11"

if [ ! -x "$venv/bin/python" ]; then
    if has_module "$python" torch || has_module "$python" triton; then
        echo "labkit: making $venv on top of $python, whose torch and triton stay as they are"
        make_venv "$python" inherit
    else
        echo "labkit: making $venv with $("$python" --version)"
        make_venv "$python" alone
    fi
fi

"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null ||
    fail "$venv has no pip. Remove that folder and run the same command again."

# torch first and pinned: an unpinned torch can be a newer one with gigabytes of other libraries.
echo "labkit: installing what is missing (minutes the first time)"
for name in torch triton; do
    has_module "$venv/bin/python" $name || install "$(requirement $name)"
done
install --editable ".[test]"
# Tests run Liger-Kernel. It asks for a package named triton, which a ROCm image has under another name, so that
# pip would put a second one on top: hence without what it asks for, which is here already.
install --no-deps liger-kernel
echo "labkit: ready. Next: make run, make lab, or $venv/bin/labkit doctor"
date > "$venv/.labkit-ready"
