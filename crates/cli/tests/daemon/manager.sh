# A user's service manager in a mount namespace of its own, for as long as standard input is open.
# Arguments: a name for its control groups, its runtime directory, its home. Says `ready`, or why it is not.
name=$1 runtime=$2 home=$3
refuse() { echo "refused: $*"; exit 0; }
mount --make-rprivate / || refuse "mounts cannot be made private"
mount -t tmpfs tmpfs /run || refuse "nothing can be mounted"
mkdir -p /run/systemd/system
groups=$(awk '$0 ~ / - cgroup2 / || $0 ~ / - cgroup .*name=systemd/ { print $5 }' /proc/self/mountinfo)
[ -n "$groups" ] || refuse "there are no control groups"
for group in $groups; do mkdir "$group/$name" || refuse "no control group can be made in $group"; done
(
    for group in $groups; do sh -c 'echo $PPID > "$0"' "$group/$name/cgroup.procs" || exit 1; done
    exec env -i HOME="$home" PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR="$runtime" \
        /lib/systemd/systemd --user </dev/null >"$home/manager.log" 2>&1
) &
manager=$!
export XDG_RUNTIME_DIR="$runtime"
tries=0
until systemctl --user is-system-running 2>/dev/null | grep -Eq 'running|degraded'; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] && kill -0 "$manager" 2>/dev/null || { said="it did not start: $(tail -n 1 "$home/manager.log")"; break; }
    sleep 0.1
done
if [ -n "$said" ]; then echo "refused: $said"; else echo ready; cat >/dev/null; fi
kill "$manager" 2>/dev/null
tries=0
while kill -0 "$manager" 2>/dev/null && [ "$tries" -lt 100 ]; do tries=$((tries + 1)); sleep 0.1; done
kill -9 "$manager" 2>/dev/null
for group in $groups; do
    tries=0
    # Nobody of this test is to outlive it, whatever became of the manager; the groups go when everyone has.
    while [ -d "$group/$name" ] && [ "$tries" -lt 100 ]; do
        find "$group/$name" -name cgroup.procs -exec cat {} + 2>/dev/null | xargs -r kill -9 2>/dev/null
        find "$group/$name" -depth -type d -exec rmdir {} + 2>/dev/null
        tries=$((tries + 1))
        [ -d "$group/$name" ] && sleep 0.05
    done
done
echo gone
