// The system calls, as the addon looks them up (load('umad', path)).
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "mad.h"
#include "world.h"

namespace fake {

World& world() {
  static World* all = new World();
  return *all;
}

Port* portWith(const Gid& gid) {
  for (auto& [path, port] : world().ports) {
    for (const Gid& own : port->gids) {
      if (own == gid) return port.get();
    }
  }
  return nullptr;
}

bool isIpv4(const Gid& gid) {
  static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return memcmp(gid.data(), prefix, sizeof(prefix)) == 0;
}

int injected(const char* call) {
  auto& injections = world().injections;
  for (size_t i = 0; i < injections.size(); i++) {
    if (injections[i].call != call || --injections[i].nth > 0) continue;
    const int error = injections[i].error;
    injections.erase(injections.begin() + static_cast<long>(i));
    return error;
  }
  return 0;
}

void signal(File& file) {
  if (file.signalled) return;
  file.signalled = write(file.other, "r", 1) == 1;
}

// As Linux does since 5.11: reading and writing fail, and polling tells of an error. A socket has
// one when its other end was closed with something unread in it.
void kill(Port& port) {
  port.gone = true;
  for (auto& [fd, file] : world().files) {
    if (file->port != &port || file->dead) continue;
    file->dead = true;
    file->sends.clear();
    for (auto& agent : file->agents) agent.reset();
    if (write(file->fd, "x", 1) != 1) continue;
    close(file->other);
    file->other = -1;
  }
}

namespace {

int fail(int error) {
  errno = error;
  return -1;
}

int registerAgent(File& file, umad::Registration& wanted) {
  if (hasMethod(*file.port, wanted)) return fail(EINVAL);
  for (uint32_t id = 0; id < kMaxAgents; id++) {
    if (file.agents[id]) continue;
    file.agents[id] = std::make_unique<Agent>(Agent{world().nextHiTid++, wanted});
    wanted.id = id;
    return 0;
  }
  return fail(ENOMEM);
}

int unregisterAgent(File& file, uint32_t id) {
  if (id >= kMaxAgents || !file.agents[id]) return fail(EINVAL);
  file.agents[id].reset();
  file.sends.clear();
  return 0;
}

// One request with a number and a class, whoever it is for; one response to the same peer.
bool isDuplicate(const File& file, const umad::Header& header, const Mad& mad) {
  for (const Send& send : file.sends) {
    const Mad other{send.packet.data() + kHeaderBytes};
    const auto& sent = *reinterpret_cast<const umad::Header*>(send.packet.data());
    if (!mad.sameTid(other) || mad.managementClass() != other.managementClass()) continue;
    if (mad.isResponse() != other.isResponse()) continue;
    if (!mad.isResponse() || memcmp(header.gid, sent.gid, 16) == 0) return true;
  }
  return false;
}

ssize_t send(File& file, const uint8_t* from, size_t length) {
  if (length < kHeaderBytes + 36) return fail(EINVAL);
  Bytes packet(from, from + length);
  auto& header = *reinterpret_cast<umad::Header*>(packet.data());
  if (file.dead) return fail(EIO);
  const Agent* agent = header.id < kMaxAgents ? file.agents[header.id].get() : nullptr;
  if (!agent) return fail(EIO);
  Gid destination;
  memcpy(destination.data(), header.gid, 16);
  if (header.gidIndex >= file.port->gids.size() || !header.grhPresent) return fail(EINVAL);
  if (!portWith(destination)) return fail(ETIMEDOUT);
  uint8_t* bytes = packet.data() + kHeaderBytes;
  const Mad mad{bytes};
  const bool transfer = agent->kernelRmpp() && mad.isActive();
  if (agent->kernelRmpp() && !mad.hasRmpp()) return fail(EINVAL);
  if (!transfer && length > kHeaderBytes + kMadBytes) return fail(EINVAL);
  if (!mad.isResponse()) setBe32(bytes + 8, agent->hiTid);
  if ((agent->kernelRmpp() || !mad.isActive()) && isDuplicate(file, header, mad)) {
    return fail(EINVAL);
  }
  transmit(file, *agent, packet);
  return static_cast<ssize_t>(length);
}

ssize_t receive(File& file, uint8_t* into, size_t length) {
  if (file.dead) return fail(EIO);
  if (file.received.empty()) return fail(EAGAIN);
  const Bytes& packet = file.received.front();
  const size_t first = kHeaderBytes + kMadBytes;
  if (length < packet.size()) {
    if (packet.size() <= first || length < first) return fail(EINVAL);
    memcpy(into, packet.data(), first);
    return fail(ENOSPC);
  }
  const size_t size = packet.size();
  memcpy(into, packet.data(), size);
  file.received.pop_front();
  if (file.received.empty() && file.signalled) {
    char token;
    file.signalled = read(file.fd, &token, 1) != 1;
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

}  // namespace fake

using fake::world;

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int umad_open(const char* path, int) {
  std::lock_guard<std::mutex> lock(world().mutex);
  if (const int error = fake::injected("open")) return fake::fail(error);
  const auto found = world().ports.find(path);
  if (found == world().ports.end()) return fake::fail(ENOENT);
  if (found->second->gone) return fake::fail(ENXIO);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  auto file = std::make_unique<fake::File>();
  file->port = found->second.get();
  file->fd = ends[0];
  file->other = ends[1];
  world().files[ends[0]] = std::move(file);
  return ends[0];
}

EXPORTED int umad_close(int fd) {
  std::lock_guard<std::mutex> lock(world().mutex);
  const auto found = world().files.find(fd);
  if (found == world().files.end()) return fake::fail(EBADF);
  const int error = fake::injected("close");
  if (found->second->other >= 0) close(found->second->other);
  world().files.erase(found);
  close(fd);
  return error ? fake::fail(error) : 0;  // whatever Linux says of a file, it is closed
}

EXPORTED int umad_ioctl(int fd, unsigned long request, void* argument) {
  std::lock_guard<std::mutex> lock(world().mutex);
  const auto found = world().files.find(fd);
  if (found == world().files.end()) return fake::fail(EBADF);
  fake::File& file = *found->second;
  const bool registers = request == umad::kRegisterAgent2;
  if (const int error = fake::injected(registers ? "register" : "unregister")) {
    return fake::fail(error);
  }
  if (file.port->gone) return fake::fail(EPIPE);
  if (registers) return fake::registerAgent(file, *static_cast<umad::Registration*>(argument));
  return fake::unregisterAgent(file, *static_cast<uint32_t*>(argument));
}

EXPORTED ssize_t umad_read(int fd, void* into, size_t lengthBytes) {
  std::lock_guard<std::mutex> lock(world().mutex);
  const auto found = world().files.find(fd);
  if (found == world().files.end()) return fake::fail(EBADF);
  if (const int error = fake::injected("read")) return fake::fail(error);
  return fake::receive(*found->second, static_cast<uint8_t*>(into), lengthBytes);
}

EXPORTED ssize_t umad_write(int fd, const void* from, size_t lengthBytes) {
  std::unique_lock<std::mutex> lock(world().mutex);
  const uint32_t delayMs = world().writeDelayMs;
  // The neighbour's address is being looked for.
  if (delayMs > 0) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(delayMs));
    lock.lock();
  }
  const auto found = world().files.find(fd);
  if (found == world().files.end()) return fake::fail(EBADF);
  if (const int error = fake::injected("write")) return fake::fail(error);
  return fake::send(*found->second, static_cast<const uint8_t*>(from), lengthBytes);
}
