#!/bin/sh
# Makes of installed packages the part of the image's file system that code changes leave alone:
#   layout.sh ROOT
# Trims and compiles the packages, adds compiled parts of the standard library (the base has none), the
# user and the folders. All times are the same, so that equal input gives an equal layer.
set -eu
root=$1
home=$root/opt/socratic-runner
here=$(dirname "$0")

python "$here/trim.py" "$home/lib/python3.12/site-packages"
python "$here/compile.py" "$root"
python "$here/compile.py" "$root" stdlib

# A virtual environment keeps the base's own packages out of sight.
mkdir -p "$home/bin" "$root/etc" "$root/home/runner" "$root/work"
ln -s "$(python -c 'import os, sys; print(os.path.realpath(sys.executable))')" "$home/bin/python"
printf 'home = /usr/local/bin\ninclude-system-site-packages = false\n' > "$home/pyvenv.cfg"

cp /etc/passwd /etc/group "$root/etc/"
echo 'runner:x:10001:10001::/home/runner:/usr/sbin/nologin' >> "$root/etc/passwd"
echo 'runner:x:10001:' >> "$root/etc/group"

chmod -R u=rwX,go=rX "$root"
chown 10001:10001 "$root/home/runner" "$root/work"
chmod 1777 "$root/work"  # a volume made here can be written under any --user
find "$root" -exec touch -h -d @315532800 {} +
