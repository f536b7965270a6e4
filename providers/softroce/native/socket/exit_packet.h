// Datagrams that leave when a signal ends the process by its default action, so that peers learn of
// it at once: the DREQs of connections.
//
// They lie ready: all that a signal handler may do is to hand them to the system. The handler then
// puts back what was there before and raises the signal again, so the process ends as it would have
// ended. A listener of the application (`process.on`) takes the handler's place, and nothing
// of this happens.
#pragma once

#include <cstddef>
#include <cstdint>

#include "socket/udp_socket.h"

namespace dapl {

/// Bytes of a packet before those at its end that are all 0.
constexpr size_t kExitPacketBytes = 72;
/// From the BTH to the pad.
constexpr size_t kMaxExitPacketBytes = 512;

/// @param packet from the BTH to the pad; longer than kMaxExitPacketBytes, or with more than
/// kExitPacketBytes before its zeros, is refused
/// @returns a number to drop it by, or -1
int64_t keepExitPacket(int fd, const SocketAddress& address, socklen_t addressBytes,
                    const uint8_t* packet, size_t bytes, uint32_t icrc);
void dropExitPacket(uint32_t number);
/// Before the socket is closed: its number may become another file's.
void dropExitPacketsOf(int fd);

/// Puts the handler where the default action is now, for each of these signals.
void watchSignal(int signal);

}  // namespace dapl
