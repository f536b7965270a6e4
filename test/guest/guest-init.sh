# Second program of a guest, run from the overlay root. The harness writes /mnt/share/start, which
# sets the variables used here and then reads this file.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mkdir -p /dev/pts /dev/shm /lib/modules
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount --bind "$GUEST_MODULES" /lib/modules
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
ulimit -l unlimited
hostname "$GUEST_NAME"

ip link set lo up
ip link set eth0 mtu "$GUEST_MTU" up
ip addr add "$GUEST_IPV4/24" dev eth0
ip -6 addr add "$GUEST_IPV6/64" dev eth0 nodad
modprobe -a rdma_rxe rdma_ucm ib_uverbs ib_umad
rdma link add rxe0 type rxe netdev eth0

# The GID table follows the addresses asynchronously; a connect before that fails.
tries=0
until [ "$(cat /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null |
  grep -c -e "$GUEST_GID4" -e "$GUEST_GID6")" = 2 ]; do
  tries=$((tries + 1))
  [ "$tries" -gt 200 ] && echo "guest: the GID table never got both addresses" && break
  sleep 0.05
done

if [ "$GUEST_SHELL" = 1 ]; then
  cd "$GUEST_CWD" || cd /
  stty -F /dev/console rows "$GUEST_ROWS" cols "$GUEST_COLUMNS"
  setsid -c /bin/bash -l
else
  "$GUEST_NODE" "$GUEST_AGENT" /dev/vport*p1
fi
echo o > /proc/sysrq-trigger
# No program: the file system may be gone before the power is, and the end of this one is a panic.
while :; do :; done
