// dapltest when packets are lost, and when its other side is killed.
import assert from 'node:assert/strict';

import type { Lab } from '../lab.js';
import type { Case } from '../suite.js';
import { captured, transcript } from './captured.js';
import { daplVersion, DEVICE, startSample, udapl } from './dapl.js';

const START_TIMEOUT_MS = 20_000;
/** A lost tail costs the kernel two seconds. */
const LOSSY_TIMEOUT_MS = 240_000;
const NETEM = 'loss 1% duplicate 1% reorder 5% delay 1ms';
const READY = /Dapltest: Service Point Ready/;
const MIX =
  'client SR 256 server SR 20000 client RW 10001 server RW 70000 client RR 4097 server RR 9';

export function daplFaultCases(lab: Lab, kernelVersion: string): Case[] {
  const version = daplVersion(kernelVersion);
  const common = { version, mtuBytes: 1024, counterpart: 'dapltest' };
  return [
    {
      name: `dapltest, our client, ${NETEM}`,
      row: { ...common, role: 'client', transport: `rdma_cm, RC, IPv4: the mix, ${NETEM}` },
      full: true,
      timeoutMs: LOSSY_TIMEOUT_MS + 30_000,
      run: () => lossy(lab),
    },
    {
      name: 'dapltest, our server, a client is killed in mid-transfer, the next is served',
      row: { ...common, role: 'server', transport: 'rdma_cm, RC, IPv4: client killed' },
      full: true,
      run: () => clientKilled(lab),
    },
  ];
}

async function lossy(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const prefix = await udapl(guest);
  await lab.setPathMtu(1024);
  await captured(lab, guest, 'dapltest-lossy', async () => {
    const serving = guest.spawn(`${prefix} dapltest -T S -D ${DEVICE}`);
    const netem = `modprobe sch_netem && tc qdisc add dev eth0 root netem ${NETEM}`;
    try {
      await serving.waitForOutput(READY, START_TIMEOUT_MS);
      assert.equal((await guest.run(netem)).code, 0);
      const words = `-T T -s ${guest.ipv4} -D ${lab.host.ipv4} -i 5 -t 2 -V ${MIX}`;
      const client = await startSample(lab, 'dapltest', words).finish(LOSSY_TIMEOUT_MS);
      assert.equal(client.code, 0, `${transcript(client)} ${serving.stdout}`);
    } finally {
      await guest.run('tc qdisc del dev eth0 root');
      serving.kill();
    }
  });
}

async function clientKilled(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const prefix = await udapl(guest);
  const own = lab.host.ipv4;
  await captured(lab, guest, 'dapltest-client-killed', async () => {
    const serving = startSample(lab, 'dapltest', `-T S -D ${own}`);
    const client = (words: string): string =>
      `${prefix} dapltest -T T -s ${own} -D ${DEVICE} ${words} ${MIX}`;
    try {
      await serving.waitForOutput(READY, START_TIMEOUT_MS);
      const killed = guest.spawn(client('-d -i 1000000'));
      await killed.waitForOutput(/iteration: 50/, START_TIMEOUT_MS);
      await killed.stop('SIGKILL');
      await serving.waitForOutput(/a client's test has failed/, START_TIMEOUT_MS);
      const next = await guest.run(client('-i 5 -V'), { timeoutMs: START_TIMEOUT_MS });
      assert.match(next.stdout, /Total WQE|Test completed successfully/, transcript(next));
      await serving.waitForOutput(/Transaction Test Finished/, START_TIMEOUT_MS);
    } finally {
      serving.kill();
    }
  });
}
