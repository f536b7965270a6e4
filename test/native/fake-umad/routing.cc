// Who gets a datagram, and what becomes of those that nobody answers.
#include <cerrno>

#include "mad.h"
#include "world.h"

namespace fake {

namespace {

constexpr uint32_t kAckWaitMs = 2000;
constexpr uint8_t kGet = 1;
constexpr uint8_t kSet = 2;
constexpr uint8_t kUnsupported = 0x0c;

Bytes received(const File& file, const Datagram& datagram) {
  umad::Header header = {};
  const auto& gids = file.port->gids;
  for (size_t i = 0; i < gids.size(); i++) {
    if (gids[i] == datagram.destination) header.gidIndex = static_cast<uint8_t>(i);
  }
  header.length = static_cast<uint32_t>(kHeaderBytes + datagram.mad.size());
  header.qpn = __builtin_bswap32(1);
  header.grhPresent = 1;
  memcpy(header.gid, datagram.source.data(), 16);
  Bytes packet(header.length);
  memcpy(packet.data(), &header, kHeaderBytes);
  memcpy(packet.data() + kHeaderBytes, datagram.mad.data(), datagram.mad.size());
  return packet;
}

Agent* agentOf(File& file, uint32_t hiTid, uint32_t* id) {
  for (*id = 0; *id < kMaxAgents; (*id)++) {
    Agent* agent = file.agents[*id].get();
    if (agent && agent->hiTid == hiTid) return agent;
  }
  return nullptr;
}

// The kernel compares the sender's GID with bytes of the IPv4 header: nothing ever matches.
bool match(File& file, const Datagram& datagram) {
  if (isIpv4(datagram.source)) return false;
  const Mad response{datagram.mad.data()};
  for (size_t i = 0; i < file.sends.size(); i++) {
    const Mad request{file.sends[i].packet.data() + kHeaderBytes};
    const bool same = request.sameTid(response) &&
                      request.managementClass() == response.managementClass();
    if (!same || file.sends[i].silent) continue;
    file.sends.erase(file.sends.begin() + static_cast<long>(i));
    return true;
  }
  return false;
}

void giveResponse(const Datagram& datagram) {
  const Mad mad{datagram.mad.data()};
  for (auto& [fd, file] : world().files) {
    uint32_t id = 0;
    const Agent* agent = agentOf(*file, mad.hiTid(), &id);
    if (!agent || file->dead) continue;
    const bool matched = match(*file, datagram);
    const bool passed = mad.isActive() && !agent->kernelRmpp() && !datagram.transfer;
    if (matched || passed) give(*file, id, received(*file, datagram));
    return;
  }
}

bool has(const umad::Registration& registration, uint8_t method) {
  return (registration.methodMask[method >> 6] >> (method & 63) & 1) != 0;
}

bool takes(const Agent& agent, const Mad& mad) {
  const umad::Registration& own = agent.registration;
  return own.managementClass == mad.managementClass() && own.classVersion == mad.classVersion() &&
         own.oui == mad.oui() && has(own, mad.method());
}

void deliver(const Datagram& datagram);

void giveRequest(const Datagram& datagram, const Port& port) {
  const Mad mad{datagram.mad.data()};
  for (auto& [fd, file] : world().files) {
    if (file->port != &port || file->dead) continue;
    for (uint32_t id = 0; id < kMaxAgents; id++) {
      const Agent* agent = file->agents[id].get();
      if (!agent || !takes(*agent, mad)) continue;
      if (datagram.transfer == agent->kernelRmpp() || !mad.isActive()) {
        give(*file, id, received(*file, datagram));
      }
      return;
    }
  }
  if (mad.method() != kGet && mad.method() != kSet) return;
  Datagram answer = {datagram.destination, datagram.source, datagram.mad, false};
  answer.mad.resize(kMadBytes);
  answer.mad[3] = 0x81;
  answer.mad[5] = kUnsupported;
  deliver(answer);
}

void deliver(const Datagram& datagram) {
  World& all = world();
  const Port* port = portWith(datagram.destination);
  if (!port || port->gone) return;
  if (all.lose > 0) {
    all.lose--;
    return;
  }
  all.carried++;
  if (Mad{datagram.mad.data()}.isResponse()) giveResponse(datagram);
  else giveRequest(datagram, *port);
}

void giveBack(File& file, const Send& send) {
  Bytes packet(send.packet.begin(), send.packet.begin() + kHeaderBytes + 24);
  auto* header = reinterpret_cast<umad::Header*>(packet.data());
  header->status = ETIMEDOUT;
  give(file, header->id, packet);
}

Gid destinationOf(const Bytes& packet) {
  Gid gid;
  memcpy(gid.data(), packet.data() + offsetof(umad::Header, gid), 16);
  return gid;
}

// False when nobody can have got it.
bool carry(File& file, const Agent& agent, const Bytes& packet) {
  const auto& header = *reinterpret_cast<const umad::Header*>(packet.data());
  Bytes mad(packet.begin() + kHeaderBytes, packet.end());
  const bool transfer = agent.kernelRmpp() && Mad{mad.data()}.isActive();
  if (!transfer) mad.resize(kMadBytes);
  const uint32_t before = world().carried;
  const Datagram datagram = {sourceOf(file, header), destinationOf(packet), mad, transfer};
  // Nor does the kernel know an acknowledgement over IPv4.
  deliver(datagram);
  return world().carried != before && !(transfer && isIpv4(datagram.source));
}

}  // namespace

Gid sourceOf(const File& file, const umad::Header& header) {
  return header.gidIndex < file.port->gids.size() ? file.port->gids[header.gidIndex] : Gid{};
}

void give(File& file, uint32_t agentId, Bytes packet) {
  reinterpret_cast<umad::Header*>(packet.data())->id = agentId;
  file.received.push_back(std::move(packet));
  signal(file);
}

void transmit(File& file, const Agent& agent, const Bytes& packet) {
  World& all = world();
  const auto& header = *reinterpret_cast<const umad::Header*>(packet.data());
  const Mad mad{packet.data() + kHeaderBytes};
  const bool transfer = agent.kernelRmpp() && mad.isActive();
  const bool silent = all.swallow > 0;
  const uint32_t waitMs = header.timeoutMs > 0 ? header.timeoutMs : kAckWaitMs;
  const bool waits = header.timeoutMs > 0 || transfer;
  if (waits) file.sends.push_back({packet, all.nowMs + waitMs, waitMs, header.retries, silent});
  if (silent) {
    all.swallow--;
    return;
  }
  const bool arrived = carry(file, agent, packet);
  const bool done = transfer && header.timeoutMs == 0 && arrived;
  if (done && !file.sends.empty()) file.sends.pop_back();
}

void advance(uint64_t ms) {
  World& all = world();
  all.nowMs += ms;
  for (auto& [fd, file] : all.files) {
    for (size_t i = 0; i < file->sends.size();) {
      if (file->sends[i].deadlineMs > all.nowMs) {
        i++;
        continue;
      }
      Send send = file->sends[i];
      const auto& header = *reinterpret_cast<const umad::Header*>(send.packet.data());
      if (send.retries > 0 && !send.silent) {
        file->sends[i].retries--;
        file->sends[i].deadlineMs = all.nowMs + send.waitMs;
        const size_t before = file->sends.size();
        carry(*file, *file->agents[header.id], send.packet);
        if (file->sends.size() == before) i++;
        continue;
      }
      file->sends.erase(file->sends.begin() + static_cast<long>(i));
      if (!send.silent) giveBack(*file, send);
    }
  }
}

bool hasMethod(const Port& port, const umad::Registration& wanted) {
  // ib_cm's own agent.
  constexpr uint8_t kCm = 7;
  constexpr uint8_t kSendMethod = 3;
  if (wanted.managementClass == kCm && wanted.classVersion == 2 && has(wanted, kSendMethod)) {
    return true;
  }
  for (auto& [fd, file] : world().files) {
    if (file->port != &port || file->dead) continue;
    for (const auto& agent : file->agents) {
      if (!agent) continue;
      const umad::Registration& own = agent->registration;
      const bool same = own.managementClass == wanted.managementClass &&
                        own.classVersion == wanted.classVersion && own.oui == wanted.oui;
      const bool overlaps = ((own.methodMask[0] & wanted.methodMask[0]) |
                             (own.methodMask[1] & wanted.methodMask[1])) != 0;
      if (same && overlaps) return true;
    }
  }
  return false;
}

}  // namespace fake
