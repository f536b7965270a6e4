/**
 * Processes of a shared address are killed at any moment, by seed: while they join, have a slot,
 * give out slots or take over. What must hold for those that are left: data flows on without a gap
 * that breaks a connection, a new process finds a slot and its service free, and nothing is left
 * of the dead.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SeededRandom } from '../../providers/hca/faults/seeded-random.js';
import { opened, type Program } from './programs.js';

const LIGHT = join(import.meta.dirname, 'light-member.js');
const MEMBERS = 4;
/** Longer than a join takes on an idle machine, so that every message of it is hit. */
const MOST_MS = 30;
/** One in so many kills is of a program with connections: the broker among them. */
const HEAVY_EVERY = 25;
const FIRST_SERVICE = 0x1060000;

export interface KillReport {
  kills: number;
  heavyKills: number;
  joins: number;
  /** What went wrong, in words. */
  readonly failures: string[];
}

class LightMember {
  readonly child: ChildProcess;
  readonly begun: Promise<unknown>;
  said = '';

  constructor(address: string, udpPort: number, service: number) {
    const args = [LIGHT, address, String(udpPort), String(service)];
    this.child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.said += text));
    this.begun = once(this.child.stdout!, 'data');
  }

  async kill(): Promise<void> {
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    if (this.child.exitCode === null && this.child.signalCode === null) await exit;
  }
}

/** @param outside an address of its own, whose program is never killed */
export async function killBySeed(
  seed: number,
  kills: number,
  { shared, outside, udpPort }: { shared: string; outside: string; udpPort: number },
): Promise<KillReport> {
  const random = new SeededRandom(seed);
  const report: KillReport = { kills: 0, heavyKills: 0, joins: 0, failures: [] };
  const watcher = await opened(outside, udpPort, 'alone');
  let heavy = await opened(shared, udpPort);
  const lasting = await opened(shared, udpPort);
  await lasting.ask('listen 2001');
  const flow = await watcher.ask(`connect ${shared} 2001`);
  const descriptors = Number(await lasting.ask('descriptors'));
  let service = FIRST_SERVICE;
  const members = Array.from(
    { length: MEMBERS },
    () => new LightMember(shared, udpPort, service++),
  );
  try {
    while (report.kills < kills) {
      const at = random.between(0, MEMBERS - 1);
      const member = members[at]!;
      await member.begun;
      await new Promise((resolve) => setTimeout(resolve, random.between(0, MOST_MS)));
      await member.kill();
      report.kills++;
      note(report, member);
      members[at] = new LightMember(shared, udpPort, service++);
      if (report.kills % HEAVY_EVERY === 0) {
        heavy = await replace(heavy, watcher, shared, udpPort, report);
        await expectSaid(watcher, `echo ${flow} 20`, 'echoed', report);
      }
    }
  } finally {
    await Promise.all(members.map((each) => each.kill()));
  }
  members.forEach((each) => note(report, each));
  await expectSaid(watcher, `echo ${flow} 20`, 'echoed', report);
  await checkLeft({ lasting, shared, udpPort, descriptors }, report);
  return report;
}

/** A program with a connection is killed: its peer learns of it, and its service is free. */
async function replace(
  victim: Program,
  watcher: Program,
  shared: string,
  udpPort: number,
  report: KillReport,
): Promise<Program> {
  await expectSaid(victim, 'listen 2002', 'listening', report);
  const number = await watcher.ask(`connect ${shared} 2002`);
  await expectSaid(watcher, `echo ${number} 5`, 'echoed', report);
  await victim.kill();
  report.heavyKills++;
  await expectSaid(watcher, `ended ${number}`, 'DAT_CONN_ENDED', report);
  return opened(shared, udpPort);
}

async function expectSaid(
  program: Program,
  command: string,
  expected: string,
  { failures, kills }: KillReport,
): Promise<void> {
  const said = await program.ask(command).catch((error: Error) => error.message);
  if (said !== expected) failures.push(`after ${kills} kills, ${command}: ${said}`);
}

function note(report: KillReport, { said, child }: LightMember): void {
  for (const line of said.split('\n')) {
    if (line.startsWith('joined')) report.joins++;
    if (line.startsWith('failed')) report.failures.push(`process ${child.pid}: ${line}`);
  }
}

/** Places of slots stay, one descriptor for each; all else is gone. */
async function checkLeft(
  left: { lasting: Program; shared: string; udpPort: number; descriptors: number },
  { failures }: KillReport,
): Promise<void> {
  const { lasting, shared, udpPort, descriptors } = left;
  const next = await opened(shared, udpPort);
  const places = socketsOf(shared, udpPort);
  const now = Number(await lasting.ask('descriptors'));
  // Those that are connected to it as broker, and what it had before, besides one a place.
  const most = descriptors + places + MEMBERS + 8;
  if (now > most) failures.push(`${now} descriptors, of ${descriptors} at first, ${places} places`);
  await next.kill();
}

/** UDP sockets that are bound to an IPv4 address. */
function socketsOf(address: string, udpPort: number): number {
  const bytes = address.split('.').map(Number).reverse();
  const hex = bytes
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .toUpperCase();
  const name = `${hex}:${udpPort.toString(16).toUpperCase()}`;
  return readFileSync('/proc/net/udp', 'utf8').split(name).length - 1;
}
