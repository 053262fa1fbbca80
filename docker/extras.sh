#!/bin/sh
# Installs extras from their locks, compiled, as the part of the file system that only `full` has:
#   extras.sh ROOT NAME...
# All times are the same, so that equal input gives an equal layer.
set -eu
root=$1
shift
packages=$root/opt/socratic-runner/lib/python3.12/site-packages
here=$(dirname "$0")

for name in "$@"; do
    if [ ! -f "$here/requirements-$name.txt" ]; then
        echo "There is no extra '$name': those that there are have a lock, requirements-NAME.txt." >&2
        exit 1
    fi
    set -- "$@" -r "$here/requirements-$name.txt"
    shift
done
python -m pip install --quiet --require-hashes --only-binary=:all: --no-deps --no-compile \
    --target "$packages" "$@"
rm -rf "$packages/bin"
find "$packages" -type d -name tests -prune -exec rm -rf {} +
find "$packages" \( -name INSTALLER -o -name RECORD -o -name REQUESTED \) -delete
python "$here/compile.py" "$root" whole
# What scipy loads of the standard library beside what a run does.
python "$here/compile.py" "$root" stdlib ctypes pydoc unittest
chmod -R u=rwX,go=rX "$root"
find "$root" -exec touch -h -d @315532800 {} +
