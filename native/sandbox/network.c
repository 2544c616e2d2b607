// The sandbox's network: loopback, and a veth pair to the host, by rtnetlink.
#define _GNU_SOURCE
#include "sandbox.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_BYTES = 1024 };

struct request {
  union {
    struct nlmsghdr header;
    char bytes[REQUEST_BYTES];
  };
};

static char *append(struct request *request, const void *data, size_t length) {
  char *at = request->bytes + NLMSG_ALIGN(request->header.nlmsg_len);
  request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + (uint32_t)length;
  if (request->header.nlmsg_len > REQUEST_BYTES) fail("net", 0, "request too long");
  if (data != NULL) memcpy(at, data, length);
  return at;
}

static struct request start_request(int type, int flags, const void *body, size_t length) {
  struct request request;
  memset(&request, 0, sizeof request);
  request.header.nlmsg_len = NLMSG_HDRLEN;
  request.header.nlmsg_type = (uint16_t)type;
  request.header.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
  append(&request, body, length);
  return request;
}

static char *add(struct request *request, int type, const void *data, size_t length) {
  struct rtattr header = {(unsigned short)(RTA_LENGTH(length)), (unsigned short)type};
  char *at = append(request, &header, sizeof header);
  if (length > 0) append(request, data, length);
  return at;
}

static void end_nest(struct request *request, char *nest) {
  request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len);
  unsigned short length = (unsigned short)(request->bytes + request->header.nlmsg_len - nest);
  memcpy(nest + offsetof(struct rtattr, rta_len), &length, sizeof length);
}

static int open_netlink(void) {
  int route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (route < 0) fail("net", errno, "netlink");
  return route;
}

// Returns the kernel's answer: 0 or an error number.
static int exchange(int route, const struct request *request, const char *what) {
  if (send(route, request->bytes, request->header.nlmsg_len, 0) < 0) fail("net", errno, what);
  union {
    struct nlmsghdr header;
    char bytes[4096];
  } answer;
  ssize_t got = recv(route, answer.bytes, sizeof answer.bytes, 0);
  if (got < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) || answer.header.nlmsg_type != NLMSG_ERROR)
    fail("net", got < 0 ? errno : EPROTO, what);
  const struct nlmsgerr *error = NLMSG_DATA(&answer.header);
  return -error->error;
}

static void perform(int route, const struct request *request, const char *what) {
  int error = exchange(route, request, what);
  if (error != 0) fail("net", error, what);
}

// No IPv6 address of its own making: only what the platform gives and filters.
static void add_no_ipv6(struct request *request) {
  uint8_t none = IN6_ADDR_GEN_MODE_NONE;
  char *families = add(request, IFLA_AF_SPEC, NULL, 0);
  char *ipv6 = add(request, AF_INET6, NULL, 0);
  add(request, IFLA_INET6_ADDR_GEN_MODE, &none, sizeof none);
  end_nest(request, ipv6);
  end_nest(request, families);
}

static struct request pair_request(const char *name, const char *peer_name, pid_t peer_owner, bool ipv6) {
  struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
  struct request request = start_request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &link, sizeof link);
  add(&request, IFLA_IFNAME, name, strlen(name) + 1);
  if (ipv6) add_no_ipv6(&request);
  char *info = add(&request, IFLA_LINKINFO, NULL, 0);
  add(&request, IFLA_INFO_KIND, "veth", strlen("veth"));
  char *data = add(&request, IFLA_INFO_DATA, NULL, 0);
  char *peer = add(&request, VETH_INFO_PEER, NULL, 0);
  append(&request, &link, sizeof link);
  add(&request, IFLA_IFNAME, peer_name, strlen(peer_name) + 1);
  uint32_t pid = (uint32_t)peer_owner;
  add(&request, IFLA_NET_NS_PID, &pid, sizeof pid);
  if (ipv6) add_no_ipv6(&request);
  end_nest(&request, peer);
  end_nest(&request, data);
  end_nest(&request, info);
  return request;
}

// The peer lies in the network namespace of `peer_owner`.
static void make_pair(int route, const char *name, const char *peer_name, pid_t peer_owner) {
  struct request request = pair_request(name, peer_name, peer_owner, true);
  int error = exchange(route, &request, "making the veth pair");
  if (error == EAFNOSUPPORT) { // A kernel without IPv6.
    request = pair_request(name, peer_name, peer_owner, false);
    error = exchange(route, &request, "making the veth pair");
  }
  if (error != 0) fail("net", error, "making the veth pair");
}

static uint32_t parse_address(const char *text) {
  struct in_addr address;
  if (inet_pton(AF_INET, text, &address) != 1) fail("spec", 0, text);
  return address.s_addr;
}

static void add_address(int route, unsigned index, const char *text, long prefix) {
  struct ifaddrmsg body = {.ifa_family = AF_INET, .ifa_prefixlen = (uint8_t)prefix, .ifa_index = index};
  struct request request = start_request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof body);
  uint32_t address = parse_address(text);
  add(&request, IFA_LOCAL, &address, sizeof address);
  add(&request, IFA_ADDRESS, &address, sizeof address);
  perform(route, &request, "setting an address");
}

static void raise_link(int route, unsigned index) {
  struct ifinfomsg link = {
      .ifi_family = AF_UNSPEC, .ifi_index = (int)index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
  struct request request = start_request(RTM_NEWLINK, 0, &link, sizeof link);
  perform(route, &request, "raising a link");
}

static void add_default_route(int route, const char *gateway) {
  struct rtmsg body = {.rtm_family = AF_INET,
                       .rtm_table = RT_TABLE_MAIN,
                       .rtm_protocol = RTPROT_BOOT,
                       .rtm_scope = RT_SCOPE_UNIVERSE,
                       .rtm_type = RTN_UNICAST};
  struct request request = start_request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof body);
  uint32_t address = parse_address(gateway);
  add(&request, RTA_GATEWAY, &address, sizeof address);
  perform(route, &request, "adding the route");
}

static unsigned index_of(const char *name) {
  unsigned index = if_nametoindex(name);
  if (index == 0) fail("net", errno, name);
  return index;
}

static void remove_pair(int route, const char *name) {
  unsigned index = if_nametoindex(name);
  if (index == 0) return;
  struct ifinfomsg link = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index};
  struct request request = start_request(RTM_DELLINK, 0, &link, sizeof link);
  perform(route, &request, "removing a link");
}

void make_host_link(const char *name, const char *peer_name, const char *address) {
  int route = open_netlink();
  remove_pair(route, name); // What a platform that was killed left.
  make_pair(route, name, peer_name, getpid());
  unsigned index = index_of(name);
  add_address(route, index, address, 32);
  raise_link(route, index);
  raise_link(route, index_of(peer_name));
  close(route);
}

void remove_host_link(const char *name) {
  int route = open_netlink();
  remove_pair(route, name);
  close(route);
}

void raise_loopback(void) {
  // Always the first link of its namespace.
  int route = open_netlink();
  raise_link(route, 1);
  close(route);
}

void build_network(const struct spec *spec, pid_t child) {
  const struct step *veth = find_step(spec, OP_VETH);
  const char *name = veth->args[0], *outside = veth->args[1], *inside = veth->args[2];
  long prefix = number(veth->args[3]);
  int route = open_netlink();
  make_pair(route, name, "eth0", child);
  unsigned index = index_of(name);
  add_address(route, index, outside, prefix);
  raise_link(route, index);
  close(route);

  // The rest belongs to the sandbox's namespace; the launcher needs the host's no more.
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/net", child);
  int network = open(path, O_RDONLY | O_CLOEXEC);
  if (network < 0 || setns(network, CLONE_NEWNET) < 0) fail("net", errno, "entering the sandbox's network");
  close(network);
  route = open_netlink();
  index = index_of("eth0");
  add_address(route, index, inside, prefix);
  raise_link(route, index);
  add_default_route(route, outside);
  close(route);
}
