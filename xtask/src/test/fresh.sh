# Makes a root of Debian packages and runs a command in it. Started by fresh.rs in mount and process namespaces of its own:
# what is mounted here is gone when this ends.
#
# ROOT      the folder of the root; it holds archives/ with the packages
# SOURCE    the workspace, of which the last commit is cloned
# RUST, GO  the toolchains
# MOUNTS    a file of paths, one a line, that are to be seen in the root as they are here
# FILES     a folder whose content is copied over the root
# BEGUN     a file that is written when the root is there and the command begins
# The rest of the environment, and the arguments, are the command's.
set -eu

say() { echo "fresh: $*" >&2; }

mount --bind "$ROOT" "$ROOT"
# One tree for programs and libraries, as Debian has it; packages expect to find it so.
mkdir -p "$ROOT/usr"
for folder in bin sbin lib lib32 lib64 libx32; do
    mkdir -p "$ROOT/usr/$folder"
    ln -s "usr/$folder" "$ROOT/$folder"
done
say "unpacking $(ls "$ROOT/archives" | wc -l) packages"
for archive in "$ROOT"/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$archive" > "$ROOT/archive.tar"
    tar -x --skip-old-files --keep-directory-symlink -C "$ROOT" -f "$ROOT/archive.tar"
done
rm "$ROOT/archive.tar"
for folder in proc sys dev run tmp var/lib/dpkg/info var/lib/dpkg/updates toolchain/rust toolchain/go root; do
    mkdir -p "$ROOT/$folder"
done
: > "$ROOT/var/lib/dpkg/status"
: > "$ROOT/var/lib/dpkg/available"
chmod 1777 "$ROOT/tmp"
cp -a "$FILES/." "$ROOT/"

mount -t proc proc "$ROOT/proc"
mount -t sysfs sysfs "$ROOT/sys"
mount --rbind /dev "$ROOT/dev"
mount --make-rslave "$ROOT/dev"
mount -t tmpfs -o mode=1777 shm "$ROOT/dev/shm"
mount -t tmpfs -o mode=0755 run "$ROOT/run"

say "configuring them"
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot "$ROOT" "$@"; }
inside sh -c 'dpkg --force-all --unpack /archives/*.deb && dpkg --force-all --configure -a' > "$ROOT/dpkg.log" 2>&1 || {
    tail -n 20 "$ROOT/dpkg.log" >&2
    say "the packages can't be configured"
    exit 1
}
rm -r "$ROOT/archives"

read_only() {
    [ -e "$1" ] || return 0
    if [ -d "$1" ]; then
        mkdir -p "$ROOT$2"
    elif [ ! -e "$ROOT$2" ]; then
        mkdir -p "$ROOT${2%/*}"
        : > "$ROOT$2"
    fi
    mount --bind "$1" "$ROOT$2"
    mount -o remount,bind,ro "$ROOT$2"
}
read_only "$RUST" /toolchain/rust
read_only "$GO" /toolchain/go
while read -r path; do read_only "$path" "$path"; done < "$MOUNTS"

git -c safe.directory='*' clone --quiet --no-hardlinks "$SOURCE" "$ROOT/setpoint"
say "running: $*"
echo > "$BEGUN"
unset SOURCE RUST GO MOUNTS FILES BEGUN
export HOME=/root PATH=/toolchain/rust/bin:/toolchain/go/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd "$ROOT"
# Not by exec: this shell is the first process of its namespace, and has to collect the processes that others leave behind.
status=0
chroot "$ROOT" sh -c 'unset ROOT; cd /setpoint && exec "$@"' sh "$@" || status=$?
exit "$status"
