// Sockets bound to one address with SO_REUSEPORT, by which several processes share it: socket(7),
// net/core/sock_reuseport.c. All give 0, or errno.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapl {

/// An instruction of classic BPF as JavaScript has it.
struct Instruction {
  uint32_t code, ifTrue, ifFalse, operand;
};

/// The program steers the whole group from now on: it returns a place. ENOPROTOOPT before Linux
/// 4.5; EINVAL outside a group, and for what is no program.
int attachSteering(int fd, const Instruction* program, size_t count);
/// Nothing is queued any more.
int dropAll(int fd);
/// Ends that; also where it did not hold.
int takeAll(int fd);
/// Throws away what is queued, kMostDrained datagrams at most; and error reports.
int drain(int fd, uint32_t* datagrams);

constexpr uint32_t kMostDrained = 65536;

}  // namespace dapl
