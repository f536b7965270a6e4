// Unmodified programs whose sockets are rsockets by librspreload.so. Nothing of ours listens on
// TCP, so one that fell back to TCP would get nowhere.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

import { patternOf } from '../rsocket/pattern.js';
import type { RunningCommand, RunResult } from '../command.js';
import type { Guest } from '../guest.js';
import { impair, repair } from '../impair.js';
import type { Lab } from '../lab.js';
import { paused } from '../../support/patience.js';
import type { Case } from '../suite.js';
import { transcript } from './captured.js';
import {
  assertEnded,
  type Family,
  kernelListens,
  listening,
  rowOf,
  startOurs,
  textOf,
  TRANSFER_TIMEOUT_MS,
} from './rsocket-programs.js';

const PRELOAD = 'LD_PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so';
const PORT = 9180;
const OUTAGE_MS = 2000;
const FULL_BYTES = 100_000_000;
const PARALLEL = 50;

const DOWNLOADERS = {
  curl: (url: string) => `curl -sS -g '${url}'`,
  wget: (url: string) => `wget -q -O - '${url}'`,
} as const;
type Downloader = keyof typeof DOWNLOADERS;

interface Download {
  readonly program: Downloader;
  readonly family: Family;
  readonly bytes: number;
  readonly parallel?: number;
  readonly full?: boolean;
}

const DOWNLOADS: readonly Download[] = [
  { program: 'curl', family: 'ipv4', bytes: 2_000_000 },
  { program: 'wget', family: 'ipv6', bytes: 2_000_000 },
  { program: 'curl', family: 'ipv4', bytes: FULL_BYTES, full: true },
  { program: 'wget', family: 'ipv4', bytes: FULL_BYTES, full: true },
  { program: 'curl', family: 'ipv6', bytes: FULL_BYTES, full: true },
  { program: 'curl', family: 'ipv4', bytes: FULL_BYTES / PARALLEL, parallel: PARALLEL, full: true },
];

export function rsocketPreloadCases(lab: Lab, version: string): Case[] {
  return [
    ...DOWNLOADS.map((download): Case => {
      const { program, family, bytes, parallel = 1, full = false } = download;
      const what = `${parallel === 1 ? '' : `${parallel} times `}${bytes} B`;
      return {
        name: `rsocket: ${program} preloaded, our HTTP server, ${textOf(family)}, ${what}`,
        row: rowOf(version, `${program}, preloaded`, `HTTP server, ${what}`, family),
        full,
        timeoutMs: 2 * TRANSFER_TIMEOUT_MS,
        run: () => downloadAll(lab, download),
      };
    }),
    {
      name: 'rsocket: nc.traditional preloaded serves HTTP, our HTTP client, 20 MB',
      row: rowOf(version, 'nc.traditional, preloaded', 'HTTP client, 20 MB', 'ipv4'),
      full: true,
      timeoutMs: TRANSFER_TIMEOUT_MS,
      run: () => fetchFromGuest(lab),
    },
    ...(['server', 'client'] as const).flatMap((role): Case[] => [
      {
        name: `rsocket: nc.traditional preloaded, our ${role}`,
        row: rowOf(version, 'nc.traditional, preloaded', role, 'ipv4'),
        full: role === 'client',
        run: () => (role === 'server' ? netcatToUs(lab) : netcatFromUs(lab)),
      },
      {
        name: `rsocket: iperf preloaded, our ${role}`,
        row: rowOf(version, 'iperf 2, preloaded', role, 'ipv4'),
        full: true,
        timeoutMs: TRANSFER_TIMEOUT_MS,
        run: () => (role === 'server' ? iperfToUs(lab) : iperfFromUs(lab)),
      },
    ]),
    ...(['loss 1%', 'delay 1ms 1ms loss 3% duplicate 5% reorder 20%'] as const).map(
      (trouble): Case => ({
        name: `rsocket: curl preloaded, our HTTP server, ${trouble} both ways`,
        row: rowOf(version, 'curl, preloaded', `HTTP server, ${trouble} both ways`, 'ipv4'),
        full: true,
        timeoutMs: 2 * TRANSFER_TIMEOUT_MS,
        run: async () => {
          await impair(lab.guest(0), { outgoing: trouble, incoming: trouble });
          try {
            await downloadAll(lab, { program: 'curl', family: 'ipv4', bytes: 3_000_000 });
          } finally {
            await repair(lab.guest(0));
          }
        },
      }),
    ),
    {
      name: 'rsocket: curl preloaded, our HTTP server, the link goes for 2 s',
      row: rowOf(version, 'curl, preloaded', 'HTTP server, link gone for 2 s', 'ipv4'),
      full: true,
      timeoutMs: TRANSFER_TIMEOUT_MS,
      run: () => linkGoes(lab),
    },
    {
      name: 'rsocket: curl killed in the middle: our HTTP server goes on',
      row: rowOf(version, 'curl, preloaded, killed', 'HTTP server', 'ipv4'),
      run: () => curlKilled(lab),
    },
    {
      name: 'rsocket: our HTTP server ended by SIGHUP in the middle: curl hears of it',
      row: rowOf(version, 'curl, preloaded', 'HTTP server, ended by SIGHUP', 'ipv4'),
      full: true,
      run: () => serverEnded(lab),
    },
    {
      name: 'rsocket: our HTTP server killed while curl reads: the next one serves in its place',
      row: rowOf(version, 'curl, preloaded', 'HTTP server, killed by SIGKILL', 'ipv4'),
      full: true,
      timeoutMs: TRANSFER_TIMEOUT_MS,
      run: () => serverKilled(lab),
    },
  ];
}

/** Our HTTP server on the host, as long as `body` lasts. */
async function withServer(
  lab: Lab,
  family: Family,
  body: (server: RunningCommand) => Promise<void>,
): Promise<void> {
  await lab.setPathMtu(4096);
  const server = await listening(startOurs(lab, `http-server ${lab.host[family]} ${PORT}`));
  try {
    await body(server);
  } finally {
    server.kill();
  }
}

function urlOf(lab: Lab, family: Family, bytes: number): string {
  const host = family === 'ipv6' ? `[${lab.host.ipv6}]` : lab.host.ipv4;
  return `http://${host}:${PORT}/${bytes}`;
}

function digestOf(bytes: number): string {
  return createHash('sha256').update(patternOf(bytes)).digest('hex');
}

async function downloadAll(lab: Lab, download: Download): Promise<void> {
  await withServer(lab, download.family, () => downloadFrom(lab, download));
}

/** From a server that is there. */
async function downloadFrom(lab: Lab, download: Download): Promise<void> {
  const { program, family, bytes, parallel = 1 } = download;
  const one = `${PRELOAD} ${DOWNLOADERS[program](urlOf(lab, family, bytes))} | sha256sum`;
  const all = `for i in $(seq ${parallel}); do (${one}) & done; wait`;
  const result = await lab.guest(0).run(all, { timeoutMs: 2 * TRANSFER_TIMEOUT_MS });
  assert.equal(
    result.stdout,
    `${digestOf(bytes)}  -\n`.repeat(parallel),
    `${program}: ${transcript(result)}`,
  );
}

async function linkGoes(lab: Lab): Promise<void> {
  const bytes = 20_000_000;
  await withServer(lab, 'ipv4', async () => {
    const guest = lab.guest(0);
    const curl = await startDownload(lab, guest, bytes);
    await halfway(guest);
    lab.unplug(guest);
    await paused(OUTAGE_MS);
    lab.plug(guest);
    assertEnded('curl', await curl.finish(TRANSFER_TIMEOUT_MS));
    const { stdout } = await guest.run('sha256sum /tmp/downloaded');
    assert.equal(stdout.slice(0, 64), digestOf(bytes));
  });
}

async function curlKilled(lab: Lab): Promise<void> {
  await withServer(lab, 'ipv4', async () => {
    const guest = lab.guest(0);
    const curl = await startDownload(lab, guest, FULL_BYTES);
    await halfway(guest);
    curl.kill('SIGKILL');
    await curl.exited;
    const bytes = 300_000;
    const again = await startDownload(lab, guest, bytes);
    assertEnded('the next curl', await again.finish(TRANSFER_TIMEOUT_MS));
    const { stdout } = await guest.run('sha256sum /tmp/downloaded');
    assert.equal(stdout.slice(0, 64), digestOf(bytes));
  });
}

async function serverEnded(lab: Lab): Promise<void> {
  await withServer(lab, 'ipv4', async (server) => {
    const guest = lab.guest(0);
    const curl = await startDownload(lab, guest, FULL_BYTES);
    await halfway(guest);
    server.kill('SIGHUP');
    const result = await curl.finish(TRANSFER_TIMEOUT_MS);
    // 18: a part of the file; 56: receiving failed.
    assert.ok(result.code === 18 || result.code === 56, transcript(result));
  });
}

/**
 * The device dies with its process, so nothing tells curl, which only reads and waits for ever. Its
 * connection is unknown to the next process on that address, and must do it no harm.
 */
async function serverKilled(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  let curl: RunningCommand | undefined;
  await withServer(lab, 'ipv4', async (server) => {
    curl = await startDownload(lab, guest, FULL_BYTES);
    await halfway(guest);
    server.kill('SIGKILL');
    await server.exited;
  });
  const bytes = 300_000;
  await withServer(lab, 'ipv4', async () => {
    await downloadFrom(lab, { program: 'curl', family: 'ipv4', bytes });
    const { stdout } = await guest.run('stat -c %s /tmp/downloaded');
    assert.ok(Number(stdout) < FULL_BYTES, 'a part came, and no more');
    curl?.kill('SIGKILL');
    await curl?.exited;
    // The kernel asks the new process for the end of what it knows nothing of.
    await guest.holds('! rdma resource show qp | grep -q RC', 'a queue pair is left');
    await downloadFrom(lab, { program: 'curl', family: 'ipv4', bytes });
  });
}

async function startDownload(lab: Lab, guest: Guest, bytes: number): Promise<RunningCommand> {
  const file = '/tmp/downloaded';
  // What another case has left there must not look like a download that is under way.
  await guest.run(`rm -f ${file}`);
  return guest.spawn(`${PRELOAD} exec curl -sS -g -o ${file} '${urlOf(lab, 'ipv4', bytes)}'`);
}

/** Something has been downloaded, and more is to come. */
async function halfway(guest: Guest): Promise<void> {
  await guest.holds('[ -s /tmp/downloaded ]', 'nothing is downloaded');
}

/** A server of one answer. After its end nc waits for ours, which comes with the last byte. */
async function fetchFromGuest(lab: Lab): Promise<void> {
  const bytes = 20_000_000;
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  await guest.run(`head -c ${bytes} /dev/urandom > /tmp/served`);
  const { stdout } = await guest.run('sha256sum /tmp/served');
  const head = `HTTP/1.1 200 OK\\r\\nContent-Length: ${bytes}\\r\\nConnection: close\\r\\n\\r\\n`;
  const answer = `{ printf '${head}'; cat /tmp/served; }`;
  const netcat = guest.spawn(`${answer} | ${PRELOAD} nc.traditional -l -p ${PORT} -q 60`);
  try {
    await kernelListens(guest, PORT);
    const command = `http-client ${lab.host.ipv4} ${guest.ipv4} ${PORT} / 1`;
    const ours = await startOurs(lab, command).finish(TRANSFER_TIMEOUT_MS);
    assert.equal(ours.stdout, `200 ${bytes} bytes, ${stdout.slice(0, 64)}\n`, transcript(ours));
  } finally {
    netcat.kill();
    await guest.run('rm -f /tmp/served');
  }
}

async function netcatToUs(lab: Lab): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  const ours = await listening(startOurs(lab, `sink ${lab.host.ipv4} ${PORT} 1000000`));
  const send = `head -c 1000000 /dev/urandom | tee /tmp/sent | ${PRELOAD} nc.traditional`;
  const result = await guest.run(`${send} ${lab.host.ipv4} ${PORT}; sha256sum /tmp/sent`, {
    timeoutMs: TRANSFER_TIMEOUT_MS,
  });
  assertEnded('nc', result);
  const sunk = await ours.finish(TRANSFER_TIMEOUT_MS);
  const said = sunk.stdout.trim().split('\n').at(-1);
  assert.equal(said, `1000000 bytes, ${result.stdout.slice(0, 64)}`, transcript(sunk));
}

async function netcatFromUs(lab: Lab): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  const bytes = 1_000_000;
  // It has nothing to say, so it ends its writing first, and goes on reading.
  const netcat = guest.spawn(
    `${PRELOAD} nc.traditional -q 60 -l -p ${PORT} < /dev/null | sha256sum`,
  );
  await kernelListens(guest, PORT);
  const command = `source ${lab.host.ipv4} ${guest.ipv4} ${PORT} ${bytes}`;
  const ours = await startOurs(lab, command).finish(TRANSFER_TIMEOUT_MS);
  // It leaves without closing, which is how a program looks that has crashed.
  assert.match(ours.stdout, /^(done|read ECONNRESET)/, transcript(ours));
  const { stdout } = await netcat.finish(TRANSFER_TIMEOUT_MS);
  assert.equal(stdout.slice(0, 64), digestOf(bytes));
}

async function iperfToUs(lab: Lab): Promise<void> {
  await lab.setPathMtu(4096);
  const ours = await listening(startOurs(lab, `sink ${lab.host.ipv4} 5001`));
  const iperf = `${PRELOAD} iperf -c ${lab.host.ipv4} -n 20M`;
  const result = await lab.guest(0).run(iperf, { timeoutMs: TRANSFER_TIMEOUT_MS });
  assertMeasured(result);
  const sunk = await ours.finish(TRANSFER_TIMEOUT_MS);
  const bytes = Number(/^(\d+) bytes/m.exec(sunk.stdout)?.[1]);
  assert.ok(bytes >= 20 * 2 ** 20, transcript(sunk));
}

async function iperfFromUs(lab: Lab): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  const iperf = guest.spawn(`${PRELOAD} exec stdbuf -oL iperf -s`);
  try {
    await kernelListens(guest, 5001);
    const command = `source ${lab.host.ipv4} ${guest.ipv4} 5001 20000000`;
    assertEnded('ours', await startOurs(lab, command).finish(TRANSFER_TIMEOUT_MS));
    await iperf.waitForOutput(/bits\/sec/, TRANSFER_TIMEOUT_MS);
  } finally {
    iperf.kill();
  }
}

function assertMeasured(result: RunResult): void {
  assertEnded('iperf', result);
  assert.match(result.stdout, /bits\/sec/, transcript(result));
}
