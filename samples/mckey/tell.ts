/** The sender: every endpoint sends its datagrams to the group, and learns nothing of members. */
import { type Ia, UdEp } from 'dapl';
import { datagrams } from 'dapl/flow';

import type { Options } from './options.js';

export async function tell(ia: Ia, options: Options): Promise<void> {
  const { group, sendOnly, connections, messages, sizeBytes } = options;
  // The Q_Key is the endpoint's own, which is by default that of rdma_cm's groups.
  const to = { address: group, qpn: UdEp.MULTICAST_QPN };
  const message = Uint8Array.from({ length: sizeBytes }, (_, at) => at);
  const members = await Promise.all(Array.from({ length: connections }, () => datagrams(ia)));
  if (!sendOnly) for (const { ep } of members) ep.joinMulticast(group);
  for (const member of members) {
    for (let sent = 0; sent < messages; sent++) {
      await member.send(message, to, { immediate: member.qpn });
    }
  }
  process.stdout.write(`${connections * messages} datagrams left for ${group}\n`);
}
