// The kernel's end of the CM's corner cases, in a guest, over librdmacm. Connections carry no data.
//
//   cm-peer hold <ip> <port> <count> <how>  accepts, and prints what becomes of each connection
//   cm-peer reject <ip> <port> <text>       rejects one request, with the text as private data
//   cm-peer connect <ip> <port> <count> <how>
//
// How: "stay" until the other side disconnects; "leave", all at once, when all are established;
// "sequence" is one connection after the other.
//
// Lines are "established", "rejected <status> <private data>", "unreachable <status>" and
// "disconnected". It ends when each connection has.
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESOLVE_MS = 10000, BACKLOG = 1024 };

static struct rdma_event_channel *channel;
static struct rdma_cm_id **ids;
static int count, accepted, established, ended;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static struct addrinfo *address_of(const char *ip, const char *port) {
  struct addrinfo *info;
  if (getaddrinfo(ip, port, NULL, &info)) die("getaddrinfo");
  return info;
}

static struct rdma_conn_param parameters(void) {
  struct rdma_conn_param parameters = {
      .responder_resources = 1,
      .initiator_depth = 1,
      .retry_count = 7,
      .rnr_retry_count = 7,
  };
  return parameters;
}

/** All share one completion queue: thousands of them would be the test of another thing. */
static void make_qp(struct rdma_cm_id *id) {
  static struct ibv_pd *pd;
  static struct ibv_cq *cq;
  if (pd == NULL) {
    pd = ibv_alloc_pd(id->verbs);
    cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
    if (pd == NULL || cq == NULL) die("ibv_alloc_pd");
  }
  struct ibv_qp_init_attr attributes = {
      .send_cq = cq,
      .recv_cq = cq,
      .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_RC,
  };
  if (rdma_create_qp(id, pd, &attributes)) die("rdma_create_qp");
}

static struct rdma_cm_id *listener_of(const char *ip, const char *port) {
  struct rdma_cm_id *listener;
  if (rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP)) die("rdma_create_id");
  if (rdma_bind_addr(listener, address_of(ip, port)->ai_addr)) die("rdma_bind_addr");
  if (rdma_listen(listener, BACKLOG)) die("rdma_listen");
  printf("listening\n");
  return listener;
}

static struct rdma_cm_event *next_event(void) {
  struct rdma_cm_event *event;
  fflush(stdout);
  if (rdma_get_cm_event(channel, &event)) die("rdma_get_cm_event");
  return event;
}

static int text_length(const struct rdma_cm_event *event) {
  return event->param.conn.private_data == NULL ? 0 : event->param.conn.private_data_len;
}

/** What either side does with an event of a connection. */
static void handle(const struct rdma_cm_event *event) {
  struct rdma_conn_param own = parameters();
  struct rdma_cm_id *id = event->id;
  switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(id, RESOLVE_MS)) die("rdma_resolve_route");
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      make_qp(id);
      if (rdma_connect(id, &own)) die("rdma_connect");
      break;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      make_qp(id);
      ids[accepted++] = id;
      if (rdma_accept(id, &own)) die("rdma_accept");
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      established++;
      printf("established\n");
      break;
    case RDMA_CM_EVENT_REJECTED:
      ended++;
      printf("rejected %d %.*s\n", event->status, text_length(event),
             (const char *)event->param.conn.private_data);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      ended++;
      rdma_disconnect(id);
      printf("disconnected\n");
      break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      break;
    default:
      ended++;
      printf("%s %d\n", rdma_event_str(event->event), event->status);
  }
}

static void until_all_ended(int leave) {
  while (ended < count) {
    struct rdma_cm_event *event = next_event();
    const int last = event->event == RDMA_CM_EVENT_ESTABLISHED;
    handle(event);
    rdma_ack_cm_event(event);
    if (!leave || !last || established != count) continue;
    for (int index = 0; index < count; index++) rdma_disconnect(ids[index]);
  }
}

static int reject(const char *ip, const char *port, const char *text) {
  listener_of(ip, port);
  struct rdma_cm_event *event = next_event();
  if (rdma_reject(event->id, text, (uint8_t)strlen(text))) die("rdma_reject");
  rdma_ack_cm_event(event);
  return 0;
}

static void connect_one(struct rdma_cm_id **id, const struct addrinfo *info) {
  if (rdma_create_id(channel, id, NULL, RDMA_PS_TCP)) die("rdma_create_id");
  if (rdma_resolve_addr(*id, NULL, info->ai_addr, RESOLVE_MS)) die("rdma_resolve_addr");
}

static int connect_in_sequence(const char *ip, const char *port, int total) {
  struct addrinfo *info = address_of(ip, port);
  count = 1;
  for (int index = 0; index < total; index++) {
    established = ended = 0;
    connect_one(&ids[0], info);
    until_all_ended(1);
    if (!established) return 1;
    rdma_destroy_qp(ids[0]);
    rdma_destroy_id(ids[0]);
  }
  return 0;
}

static int connect_all(const char *ip, const char *port, int leave) {
  struct addrinfo *info = address_of(ip, port);
  for (int index = 0; index < count; index++) connect_one(&ids[index], info);
  until_all_ended(leave);
  return 0;
}

int main(int argc, char **argv) {
  channel = rdma_create_event_channel();
  if (channel == NULL) die("rdma_create_event_channel");
  if (argc == 5 && strcmp(argv[1], "reject") == 0) return reject(argv[2], argv[3], argv[4]);
  if (argc == 6) {
    const int leave = strcmp(argv[5], "leave") == 0;
    count = atoi(argv[4]);
    ids = calloc((size_t)count, sizeof *ids);
    if (strcmp(argv[1], "hold") == 0) {
      listener_of(argv[2], argv[3]);
      until_all_ended(leave);
      return 0;
    }
    if (strcmp(argv[5], "sequence") == 0) return connect_in_sequence(argv[2], argv[3], count);
    return connect_all(argv[2], argv[3], leave);
  }
  fprintf(stderr, "usage: cm-peer hold|connect <ip> <port> <count> leave|stay|sequence\n"
                  "       cm-peer reject <ip> <port> <text>\n");
  return 2;
}
