// The kernel's end of the verbs cases, in a guest, over libibverbs and librdmacm: does what it is
// told, and says what came of it.
//
//   verbs-peer <control ip> <port> <rdma ip>
//
// Takes one control connection (TCP) there and ends with it. A command is a line of words,
// an answer a line of JSON; both are in the order of the commands. Numbers are decimal; objects are
// named by number, counted from 0 for each kind in the order in which they were made.
#include "peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct {
  const char *name;
  command_handler *handler;
} COMMANDS[] = {
    {"pd", do_pd},           {"region", do_region},     {"deregister", do_deregister},
    {"fill", do_fill},       {"digest", do_digest},     {"put", do_put},
    {"word", do_word},       {"window", do_window},     {"qp", do_qp},
    {"connect", do_connect}, {"datagrams", do_datagrams}, {"handle", do_handle},
    {"state", do_state},     {"error", do_error},       {"listen", do_listen},
    {"accept", do_accept},   {"dial", do_dial},         {"disconnect", do_disconnect},
    {"receive", do_receive}, {"send", do_send},         {"bind", do_bind},
    {"post", do_post},       {"poll", do_poll},
};

void die(const char *what) {
  perror(what);
  exit(1);
}

void refuse(struct command *command, const char *what) {
  fprintf(command->reply, "{\"error\":\"%s: %s\"}\n", what, strerror(errno));
}

const char *next_word(struct command *command) {
  const char *word = strsep(&command->rest, " \n");
  if (word != NULL && *word != '\0') return word;
  fprintf(stderr, "verbs-peer: a word is missing\n");
  exit(2);
}

uint64_t next_number(struct command *command) {
  const char *word = next_word(command);
  char *end;
  uint64_t value = strtoull(word, &end, 10);
  if (*end == '\0') return value;
  fprintf(stderr, "verbs-peer: %s is no number\n", word);
  exit(2);
}

int next_index(struct command *command, int count) {
  uint64_t index = next_number(command);
  if (index < (uint64_t)count) return (int)index;
  fprintf(stderr, "verbs-peer: no object %d of %d\n", (int)index, count);
  exit(2);
}

static void obey(struct peer *peer, struct command *command) {
  const char *name = next_word(command);
  for (size_t at = 0; at < sizeof COMMANDS / sizeof *COMMANDS; at++) {
    if (strcmp(name, COMMANDS[at].name) != 0) continue;
    COMMANDS[at].handler(peer, command);
    return;
  }
  fprintf(stderr, "verbs-peer: unknown command %s\n", name);
  exit(2);
}

/** Waits for the control connection. */
static int await_control(const char *ip, int port) {
  const int one = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, ip, &address.sin_addr);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *)&address, sizeof address)) die("bind");
  if (listen(listener, 1)) die("listen");
  printf("listening\n");
  fflush(stdout);
  int control = accept(listener, NULL, NULL);
  if (control < 0) die("accept");
  setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  close(listener);
  return control;
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: verbs-peer <control ip> <port> <rdma ip>\n");
    return 2;
  }
  static struct peer peer;
  open_device(&peer, argv[3]);
  int control = await_control(argv[1], atoi(argv[2]));
  FILE *in = fdopen(control, "r");
  FILE *out = fdopen(dup(control), "w");
  char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, in) > 0) {
    struct command command = {.rest = line, .reply = out};
    obey(&peer, &command);
    fflush(out);
  }
  return 0;
}
