// A bad link, at the guest's end of it: what the guest sends goes through netem at once, what it
// receives through netem on an intermediate device. (The host's kernel may lack netem.)
import assert from 'node:assert/strict';

import type { Guest } from './guest.js';

/** Parameters of netem (tc-netem(8)), per direction as the guest sees it. */
export interface Impairment {
  readonly outgoing?: string;
  readonly incoming?: string;
}

/** Room for bursts: what netem cannot hold it drops, and that is not what was asked for. */
const LIMIT = 'limit 20000';
const CLEAR = 'tc qdisc del dev eth0 root; tc qdisc del dev eth0 ingress; ip link del ifb0; true';

export async function impair(guest: Guest, { outgoing, incoming }: Impairment): Promise<void> {
  const commands = ['modprobe sch_netem'];
  if (outgoing !== undefined)
    commands.push(`tc qdisc add dev eth0 root netem ${LIMIT} ${outgoing}`);
  if (incoming !== undefined) {
    commands.push(
      'modprobe ifb numifbs=0; ip link add ifb0 type ifb',
      'ip link set ifb0 up',
      `tc qdisc add dev ifb0 root netem ${LIMIT} ${incoming}`,
      'tc qdisc add dev eth0 ingress',
      'tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0',
    );
  }
  const result = await guest.run(`set -e; ${commands.join('; ')}`);
  assert.equal(result.code, 0, result.stderr);
}

/** Makes the link good again, whatever was done to it. */
export async function repair(guest: Guest): Promise<void> {
  await guest.run(CLEAR);
}
