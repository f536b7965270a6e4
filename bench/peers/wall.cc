// The wall: what UDP with GSO and GRO can carry here when every packet has an ICRC and there is no
// protocol. A packet is 12 bytes of header, payload and CRC, as RoCE's; the sender gathers trains
// of equal ones from its memory, the receiver copies each payload into place and checks its CRC,
// made by the code that softroce's port uses. Loss is not repaired, only counted; what keeps the
// sender within the receive buffer is a credit for every burst.
//
//   wall server|client LOCAL REMOTE PORT WORKLOAD BYTES DEPTH SECONDS VARIANT
//
// WORKLOAD is `stream` or `ping`. Up to 64 KiB a burst is a message, so each has its ACK.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "control.h"
#include "icrc/crc32.h"

namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kCrcBytes = 4;
constexpr size_t kMaxPayload = 4096;
constexpr size_t kMaxDatagram = 65507;
constexpr size_t kMaxSegments = 64;
constexpr size_t kMemory = 4 << 20;
/// Unanswered bytes on the way: below what the receive buffer holds.
constexpr size_t kWindow = 1 << 20;
constexpr double kLost = 0.1;
constexpr unsigned kLooks = 64;

struct Plan {
  size_t payload;  ///< of a packet
  size_t burst;    ///< packets for a credit
  size_t window;   ///< packets without one, at most
  size_t train;    ///< packets of a datagram, at most
};

struct Header {
  uint32_t words[3];
};

[[noreturn]] void fail(const char* what) {
  perror(what);
  exit(1);
}

Plan planOf(size_t bytes, size_t depth) {
  Plan plan;
  plan.payload = bytes < kMaxPayload ? bytes : kMaxPayload;
  const size_t perMessage = bytes / plan.payload;
  const size_t wire = kHeaderBytes + plan.payload + kCrcBytes;
  plan.train = kMaxDatagram / wire < kMaxSegments ? kMaxDatagram / wire : kMaxSegments;
  const size_t fitting = kWindow / plan.payload;
  if (perMessage > 16) {
    plan.burst = 4 * plan.train;
    plan.window = fitting;
  } else if (perMessage > 1) {
    plan.burst = perMessage;
    plan.window = fitting < depth * perMessage ? fitting : depth * perMessage;
  } else {
    plan.burst = depth > 1 ? depth / 2 : 1;
    plan.window = depth;
  }
  return plan;
}

sockaddr_in addressOf(const char* ip) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(47912);
  if (inet_pton(AF_INET, ip, &address.sin_addr) != 1) fail(ip);
  return address;
}

class Wall {
 public:
  Wall(const char* local, const char* remote, const Plan& plan) : plan_(plan) {
    fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    const sockaddr_in own = addressOf(local);
    const sockaddr_in other = addressOf(remote);
    const int one = 1, size = 4 << 20;
    if (fd_ < 0 || bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
      fail(local);
    }
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&other), sizeof other) != 0) fail(remote);
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (setsockopt(fd_, IPPROTO_UDP, UDP_GRO, &one, sizeof one) != 0) fail("UDP_GRO");
    memory_ = static_cast<uint8_t*>(aligned_alloc(4096, kMemory));
    memset(memory_, 1, kMemory);
  }

  /// Sends `packets` in trains from one place of the memory after another.
  void send(size_t packets) {
    for (size_t left = packets; left > 0;) {
      const size_t count = left < plan_.train ? left : plan_.train;
      sendTrain(count, plan_.payload);
      left -= count;
    }
  }

  /// A packet without payload.
  void credit() { sendTrain(1, 0); }

  /// Takes in what there is of one datagram.
  /// @returns packets, credits among them
  size_t receive() {
    iovec room = {arena_, sizeof arena_};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message = {};
    message.msg_iov = &room;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t length = recvmsg(fd_, &message, 0);
    if (length < 0) {
      if (errno == EAGAIN || errno == ECONNREFUSED) return 0;
      fail("recvmsg");
    }
    size_t segment = static_cast<size_t>(length);
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO) continue;
      int size;
      memcpy(&size, CMSG_DATA(c), sizeof size);
      segment = static_cast<size_t>(size);
    }
    size_t packets = 0;
    for (size_t at = 0; at < static_cast<size_t>(length); at += segment, packets++) {
      const size_t left = static_cast<size_t>(length) - at;
      take(arena_ + at, left < segment ? left : segment);
    }
    return packets;
  }

 private:
  void sendTrain(size_t count, size_t payload) {
    for (size_t i = 0; i < count; i++) {
      headers_[i].words[0] = 4;
      headers_[i].words[2] = sequence_++;
      const uint8_t* data = nextPlace(payload);
      uint32_t reg = dapl::crc32Update(~0U, reinterpret_cast<uint8_t*>(&headers_[i]),
                                       kHeaderBytes, 0);
      if (payload > 0) reg = dapl::crc32Update(reg, data, payload, 0);
      crcs_[i] = ~reg;
      pieces_[3 * i] = {&headers_[i], kHeaderBytes};
      pieces_[3 * i + 1] = {const_cast<uint8_t*>(data), payload};
      pieces_[3 * i + 2] = {&crcs_[i], kCrcBytes};
    }
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))] = {};
    msghdr message = {};
    message.msg_iov = pieces_;
    message.msg_iovlen = 3 * count;
    if (count > 1) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = IPPROTO_UDP;
      c->cmsg_type = UDP_SEGMENT;
      c->cmsg_len = CMSG_LEN(sizeof(uint16_t));
      const uint16_t size = static_cast<uint16_t>(kHeaderBytes + payload + kCrcBytes);
      memcpy(CMSG_DATA(c), &size, sizeof size);
    }
    while (sendmsg(fd_, &message, 0) < 0) {
      if (errno != EAGAIN && errno != ENOBUFS && errno != ECONNREFUSED) fail("sendmsg");
    }
  }

  void take(const uint8_t* packet, size_t length) {
    if (length < kHeaderBytes + kCrcBytes) fail("a short packet");
    const size_t payload = length - kHeaderBytes - kCrcBytes;
    uint8_t* place = nextPlace(payload);
    memcpy(place, packet + kHeaderBytes, payload);
    const uint32_t reg = dapl::crc32Update(~0U, packet, length - kCrcBytes, 0);
    uint32_t crc;
    memcpy(&crc, packet + length - kCrcBytes, sizeof crc);
    if (crc != ~reg) fail("a wrong CRC");
  }

  uint8_t* nextPlace(size_t length) {
    if (offset_ + length > kMemory) offset_ = 0;
    uint8_t* place = memory_ + offset_;
    offset_ += length;
    return place;
  }

  const Plan plan_;
  int fd_;
  uint8_t* memory_;
  size_t offset_ = 0;
  uint32_t sequence_ = 0;
  Header headers_[kMaxSegments] = {};
  uint32_t crcs_[kMaxSegments];
  iovec pieces_[3 * kMaxSegments];
  alignas(64) uint8_t arena_[65536];
};

void serve(Wall& wall, const Plan& plan, int control, bool isPing) {
  size_t uncredited = 0;
  for (unsigned look = 0;; look++) {
    const size_t packets = wall.receive();
    if (packets == 0) {
      if (look % (16 * kLooks) == 0 && control_ready(control)) return;
    } else if (isPing) {
      wall.send(1);
    } else {
      uncredited += packets;
      for (; uncredited >= plan.burst; uncredited -= plan.burst) wall.credit();
    }
  }
}

struct Outcome {
  size_t packets = 0;
  size_t counted = 0;
  size_t lost = 0;
  double seconds = 0;
};

Outcome stream(Wall& wall, const Plan& plan, double seconds) {
  Outcome outcome;
  const double start = now_seconds();
  double since = start, now = start, answered = start;
  size_t inFlight = 0, leadIn = 0;
  bool over = false;
  for (unsigned look = 0; inFlight > 0 || !over; look++) {
    if (!over && inFlight + plan.burst <= plan.window) {
      wall.send(plan.burst);
      inFlight += plan.burst;
    }
    const size_t answeredPackets = wall.receive() * plan.burst;
    inFlight -= answeredPackets < inFlight ? answeredPackets : inFlight;
    outcome.packets += answeredPackets;
    if (answeredPackets > 0) answered = now;
    if (look % kLooks != 0 && plan.payload < kMaxPayload) continue;
    now = now_seconds();
    if (leadIn == 0 && now >= start + seconds * LEAD_IN) {
      leadIn = outcome.packets;
      since = now;
    }
    over = now >= start + seconds && leadIn > 0 && outcome.packets > leadIn;
    if (now - answered > kLost) {
      outcome.lost += inFlight;
      inFlight = 0;
      answered = now;
    }
  }
  outcome.counted = outcome.packets - leadIn;
  outcome.seconds = now_seconds() - since;
  return outcome;
}

void ping(Wall& wall, double seconds, laps* times) {
  laps_start(times);
  const double start = times->since;
  while (times->since < start + seconds || times->count == 0) {
    wall.send(1);
    const double sent = times->since;
    for (unsigned look = 1; wall.receive() == 0; look++) {
      if (look % kLooks != 0 || now_seconds() - sent < kLost) continue;
      wall.send(1);  // a datagram was lost
      times->since = now_seconds();
      break;
    }
    laps_add(times);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 11) fail("ten arguments are due");
  const bool isClient = strcmp(argv[1], "client") == 0;
  const bool isPing = strcmp(argv[5], "ping") == 0;
  const size_t bytes = strtoul(argv[6], nullptr, 10);
  const Plan plan = planOf(bytes, strtoul(argv[7], nullptr, 10));
  const double seconds = atof(argv[8]);
  end_with_parent(seconds);
  static Wall wall(argv[2], argv[3], plan);
  const int control = isClient ? control_connect(argv[3], atoi(argv[4])) : control_listen(argv[2]);
  uint8_t over = 1;
  const double before = cpu_seconds();
  if (!isClient) {
    serve(wall, plan, control, isPing);
    printf("{\"cpuSeconds\":%.6f}\n", cpu_seconds() - before);
    return 0;
  }
  if (isPing) {
    laps times = {};
    ping(wall, seconds, &times);
    double p50, p99;
    laps_percentiles(&times, &p50, &p99);
    printf("{\"messages\":%zu,\"counted\":%zu,\"seconds\":%.6f,\"cpuSeconds\":%.6f,"
           "\"p50\":%.3f,\"p99\":%.3f}\n",
           times.total, times.count, seconds, cpu_seconds() - before, p50, p99);
  } else {
    const Outcome outcome = stream(wall, plan, seconds);
    const double messages = static_cast<double>(plan.payload) / static_cast<double>(bytes);
    printf("{\"messages\":%.3f,\"counted\":%.3f,\"seconds\":%.6f,\"cpuSeconds\":%.6f,"
           "\"lost\":%zu}\n",
           static_cast<double>(outcome.packets) * messages,
           static_cast<double>(outcome.counted) * messages, outcome.seconds,
           cpu_seconds() - before, outcome.lost);
  }
  control_send(control, &over, 1);
  return 0;
}
