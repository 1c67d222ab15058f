# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# A network of its own for each crew, to be sourced: every worker in a network namespace, with a link of a given rate (tc,
# one token bucket each way) to a switch that is a given delay away (delay_line). No byte leaves these namespaces.
#
#   network_up COUNT MBITS DELAY_US   workers 0.. are at $network.1 and on
#   network_run INDEX COMMAND...      runs the command as that worker, in place of the shell; workers share no memory
#   network_down                      takes all of it away; call it from a trap

network=10.77.0
network_name=cost$$
network_frame=9000
network_count=0
network_line=

network_lacks() {
    local lacks=
    [[ $(id -u) == 0 ]] || lacks+=', root'
    command -v ip >/dev/null || lacks+=', ip (iproute2)'
    command -v tc >/dev/null || lacks+=', tc (iproute2)'
    [[ -c /dev/net/tun ]] || lacks+=', /dev/net/tun'
    if [[ -z $lacks ]]; then
        if ! ip netns add "$network_name-try" 2>/dev/null; then
            lacks=', network namespaces'
        elif ! { ip -n "$network_name-try" link add va0 type veth peer name va1 && ip -n "$network_name-try" link add br0 type bridge &&
            ip netns exec "$network_name-try" tc qdisc add dev va0 root tbf rate 1mbit burst 10kb limit 1mb; } 2>/dev/null; then
            lacks=', veth, bridge or tbf in the kernel'
        fi
        ip netns del "$network_name-try" 2>/dev/null
    fi
    echo "${lacks#, }"
}

# in_hub COMMAND...: where the switch is
in_hub() {
    ip netns exec "$network_name-hub" "$@"
}

# limit NAMESPACE DEVICE: a bucket of little more than one frame, and room for what TCP has under way
limit() {
    ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "${network_rate}mbit" burst 10kb limit 64mb
}

# add_worker INDEX
add_worker() {
    local name=$network_name-$1 number=$(($1 + 1))
    ip netns add "$name" || return
    ip netns exec "$name" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv4.tcp_slow_start_after_idle=0 \
        net.ipv4.tcp_congestion_control=reno
    ip link add eth0 netns "$name" mtu $network_frame address "$(printf '02:00:00:00:00:%02x' $number)" \
        type veth peer name "p$1" netns "$network_name-hub" mtu $network_frame &&
        ip -n "$name" addr add "$network.$number/24" dev eth0 && ip -n "$name" link set eth0 up && ip -n "$name" link set lo up &&
        in_hub ip link add "b$1" mtu $network_frame type bridge && in_hub ip link set "t$1" mtu $network_frame master "b$1" up &&
        in_hub ip link set "p$1" master "b$1" up && in_hub ip link set "b$1" up &&
        limit "$name" eth0 && limit "$network_name-hub" "p$1"
}

network_up() {
    local index taps=()
    network_rate=$2
    for ((index = 0; index < $1; index++)); do taps+=("t$index"); done
    ip netns add "$network_name-hub" || return
    in_hub sysctl -qw net.ipv6.conf.all.disable_ipv6=1
    coproc LINE { exec ip netns exec "$network_name-hub" nice -n -20 "${BUILD:-build}/tests/delay_line" "$3" "${taps[@]}"; }
    network_line=$LINE_PID
    read -r <&"${LINE[0]}" || return
    for ((index = 0; index < $1; index++)); do
        network_count=$((index + 1))
        add_worker $index || return
    done
}

network_run() {
    local index=$1
    shift
    # shellcheck disable=SC2016 # ip gives each command a mount namespace of its own
    exec ip netns exec "$network_name-$index" bash -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' - "$@"
}

network_down() {
    local index
    if [[ -n $network_line ]]; then
        kill "$network_line" 2>/dev/null
        wait "$network_line" 2>/dev/null
    fi
    for ((index = 0; index < network_count; index++)); do ip netns del "$network_name-$index" 2>/dev/null; done
    ip netns del "$network_name-hub" 2>/dev/null
    network_line='' network_count=0
}
