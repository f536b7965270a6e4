// Two programs of the host behind one address: the kernel's device takes them for one.
import assert from 'node:assert/strict';

import type { RunningCommand } from '../command.js';
import type { Lab } from '../lab.js';
import type { Case, InteropRow } from '../suite.js';
import { CM_ATTRIBUTE, type CmName, type Dissection } from '../tshark.js';
import { captured, startPeer, transcript } from './captured.js';

const START_TIMEOUT_MS = 60_000;
const PING_TIMEOUT_MS = 120_000;
const PORTS = [7174, 7175] as const;
const COUNT = 5;
const SIZE_BYTES = 10_001;

export function sharedAddressCases(lab: Lab, version: string): Case[] {
  const row = (role: string): InteropRow => ({
    counterpart: 'rping',
    version,
    role,
    transport: 'rdma_cm, RC, IPv4, two programs behind one address',
    mtuBytes: 1024,
  });
  return [
    {
      name: 'shared address: the kernel connects to two of our programs',
      row: row('server'),
      run: () => twoServers(lab),
    },
    {
      name: 'shared address: two of our programs connect to the kernel',
      row: row('client'),
      run: () => twoClients(lab),
    },
    {
      name: 'shared address: one of our programs is killed, the other one disconnects for it',
      row: row('server, killed'),
      run: () => oneKilled(lab),
    },
  ];
}

async function startServers(lab: Lab): Promise<RunningCommand[]> {
  const started: RunningCommand[] = [];
  for (const port of PORTS) {
    const serving = startPeer(lab, `--shared rping-server ${lab.host.ipv4} ${port}`);
    started.push(serving);
    await serving.waitForOutput(/^listening/m, START_TIMEOUT_MS);
  }
  return started;
}

async function twoServers(lab: Lab): Promise<void> {
  await lab.setPathMtu(1024);
  const guest = lab.guest(0);
  await captured(lab, guest, 'shared-servers', async () => {
    const serving = await startServers(lab);
    try {
      const options = `-a ${lab.host.ipv4} -C ${COUNT} -S ${SIZE_BYTES} -V -v`;
      const clients = PORTS.map((port) => guest.spawn(`stdbuf -oL rping -c ${options} -p ${port}`));
      for (const client of clients) {
        const result = await client.finish(PING_TIMEOUT_MS);
        const pings = result.stdout.match(/^ping data: rdma-ping-/gm)?.length;
        assert.equal(pings, COUNT, transcript(result));
      }
      for (const server of serving) {
        const result = await server.finish(PING_TIMEOUT_MS);
        assert.equal(result.code, 0, transcript(result));
        const pings = result.stdout.match(/^server ping data: rdma-ping-/gm)?.length;
        assert.equal(pings, COUNT, transcript(result));
      }
    } finally {
      for (const server of serving) server.kill();
    }
  });
}

async function twoClients(lab: Lab): Promise<void> {
  await lab.setPathMtu(1024);
  const guest = lab.guest(0);
  await captured(lab, guest, 'shared-clients', async () => {
    const serving: RunningCommand[] = [];
    try {
      // One for each: before rdma-core 61 a persistent rping forgets a request that comes while it
      // has not yet taken up another, and accepts the later one twice.
      for (const port of PORTS) {
        const server = guest.spawn(`stdbuf -oL rping -d -s -P -a ${guest.ipv4} -S 1000 -p ${port}`);
        serving.push(server);
        await server.waitForOutput(/rdma_listen/, START_TIMEOUT_MS);
      }
      const clients = PORTS.map((port) =>
        startPeer(lab, `--shared rping-in-sequence ${guest.ipv4} ${COUNT} ${port}`),
      );
      for (const client of clients) {
        const result = await client.finish(PING_TIMEOUT_MS);
        assert.equal(result.stdout, `connected ${COUNT}\n`, transcript(result));
      }
    } finally {
      for (const server of serving) await server.stop();
    }
  });
}

/** The kernel's client hears of the death, and the other program goes on. */
async function oneKilled(lab: Lab): Promise<void> {
  await lab.setPathMtu(1024);
  const guest = lab.guest(0);
  const packets = await captured(lab, guest, 'shared-killed', () => killOne(lab));
  assertDisconnectedFor(packets, PORTS[1], lab.host.ipv4, guest.ipv4);
}

/** A DREQ with the ids of the killed program's connection left our address, and was answered. */
function assertDisconnectedFor(
  packets: readonly Dissection[],
  port: number,
  ours: string,
  theirs: string,
): void {
  const one = (name: CmName, is: (cm: Dissection['cm']) => boolean): Dissection => {
    const found = packets.find(
      ({ cmAttribute, cm }) => cmAttribute === CM_ATTRIBUTE[name] && is(cm),
    );
    assert.ok(found, `${name} of the connection to port ${port}`);
    return found;
  };
  const { cm: req } = one('REQ', ({ reqServicePort }) => Number(reqServicePort) === port);
  const { cm: rep } = one('REP', ({ repRemoteCommId }) => repRemoteCommId === req.reqCommId);
  const dreq = one('DREQ', ({ dreqCommId }) => dreqCommId === rep.repCommId);
  assert.equal(dreq.source, ours);
  assert.equal(dreq.cm.dreqRemoteCommId, req.reqCommId);
  assert.equal(Number(dreq.cm.dreqRemoteQpn), Number(req.reqQpn));
  const drep = one('DREP', ({ drepRemoteCommId }) => drepRemoteCommId === rep.repCommId);
  assert.equal(drep.source, theirs);
  assert.ok(drep.frame > dreq.frame, 'the kernel answers');
}

async function killOne(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const serving = await startServers(lab);
  const [survivor, victim] = serving as [RunningCommand, RunningCommand];
  const clients: RunningCommand[] = [];
  try {
    for (const port of PORTS) {
      const options = `-a ${lab.host.ipv4} -C 1000000 -S 64 -p ${port}`;
      const client = guest.spawn(`stdbuf -oL rping -c -d -v ${options}`);
      clients.push(client);
      await client.waitForOutput(/^ping data: rdma-ping-/m, START_TIMEOUT_MS);
    }
    const [going, ended] = clients as [RunningCommand, RunningCommand];
    await victim.stop('SIGKILL');
    await ended.waitForOutput(/DISCONNECT EVENT/, PING_TIMEOUT_MS);
    await going.stop();
    // Its client has gone: it has been served to the end.
    await survivor.finish(PING_TIMEOUT_MS);
  } finally {
    for (const each of [...clients, ...serving]) each.kill();
  }
}
