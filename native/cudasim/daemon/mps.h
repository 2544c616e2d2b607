// MPS daemons, and faults, which hit all clients of one.
#ifndef GPUWHISK_CUDASIM_MPS_H
#define GPUWHISK_CUDASIM_MPS_H

#include "node.h"
#include "reply.h"

#include <functional>

namespace gpuwhisk::sim {

/** Tells a client that all its calls answer `error` from now on, and ends what it runs. */
using Strike = std::function<void(Client &client, int32_t error)>;

/** Registers the MPS daemon that this connection is. Throws Refusal. */
Reply start_mps(Node &node, Client &connection, const gwsim_mps_start &request);
/** Answers gwsim_mps_settings, as they are then. */
Reply set_mps(Client &connection, const gwsim_mps_set &request);
Reply terminate_mps_client(Node &node, const gwsim_mps_target &request, const Strike &strike);

/** The registration ends; its clients are struck with 807 (server not ready). */
void end_mps(Node &node, MpsDaemon &daemon, const Strike &strike);

/** A kernel of `client` did what no kernel may. Strikes it and, under MPS, all clients of its server. */
void fault(Node &node, Client &client, Gpu &gpu, uint64_t xid, const Strike &strike);

/** A fault on demand. Throws Refusal. */
Reply inject_fault(Node &node, const gwsim_fault &request, const Strike &strike);

} // namespace gpuwhisk::sim

#endif
