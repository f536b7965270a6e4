#!/bin/sh
# Two rxe devices of one guest, rxea and rxeb, on the ends of a cable of its own: 10.90.0.1 and
# 10.90.0.2. What the guest sends to itself would stay within, so the table of local addresses is
# asked last for what leaves, and packets from an address of our own are taken.
#   two-devices.sh up | down
set -e
if [ "$1" = up ]; then
  modprobe veth
  ip link add va type veth peer name vb
  for one in all va vb; do
    echo 0 > "/proc/sys/net/ipv4/conf/$one/rp_filter"
    echo 1 > "/proc/sys/net/ipv4/conf/$one/accept_local"
  done
  ip addr add 10.90.0.1/24 dev va
  ip addr add 10.90.0.2/24 dev vb
  ip link set va mtu 9000 up
  ip link set vb mtu 9000 up
  ip route add 10.90.0.2 dev va src 10.90.0.1 table 90
  ip route add 10.90.0.1 dev vb src 10.90.0.2 table 90
  ip rule add pref 10 to 10.90.0.0/24 iif lo lookup 90
  ip rule add pref 100 lookup local
  ip rule del pref 0
  rdma link add rxea type rxe netdev va
  rdma link add rxeb type rxe netdev vb
  for i in $(seq 50); do
    [ "$(cat /sys/class/infiniband/rxe[ab]/ports/1/gids/* 2>/dev/null |
      grep -c -e 0000:ffff:0a5a:0001 -e 0000:ffff:0a5a:0002)" = 2 ] && exit 0
    sleep 0.1
  done
  exit 1
fi
rdma link delete rxea
rdma link delete rxeb
ip rule add pref 0 lookup local
ip rule del pref 100
ip rule del pref 10
ip route flush table 90
ip link delete va
