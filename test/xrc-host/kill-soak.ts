/**
 * An opener of an XRC domain, or its host, is killed at a message between them, by seed. What must
 * hold for those that are left: nothing hangs, the target lives on while another process keeps it,
 * what the sender was told has arrived has arrived once, the fatal event comes once, and nothing is
 * left of the dead.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
import { Program } from '../slots/programs.js';
import { patience, paused } from '../support/patience.js';
import { hostsOf, PROGRAM, type World } from './world.js';

const HOOK = pathToFileURL(join(import.meta.dirname, 'kill-hook.js')).href;
/** An opener that does all there is to do says and hears fewer. */
const MOST_MESSAGES = 24;
const LOOK_MS = 10;
const END_MS = 20_000;
/** Descriptors that come and go: sockets of openers, and memory until it is collected. */
const SLACK = 24;

export interface KillReport {
  openers: number;
  hosts: number;
  /** The opener ended before its message came. */
  missed: number;
  /** What went wrong, in words. */
  readonly failures: string[];
}

/** What lasts: a receiver that keeps each target, and a sender. */
class Stage {
  readonly directory = mkdtempSync(join(tmpdir(), 'xrc-kill-'));
  readonly address: string;
  readonly outside: string;
  readonly key: string;
  readonly random: SeededRandom;
  readonly report: KillReport = { openers: 0, hosts: 0, missed: 0, failures: [] };
  readonly keeper: Program;
  readonly sender: Program;
  readonly arrived: string[] = [];
  srqn = 0;

  constructor(world: World, seed: number) {
    this.random = new SeededRandom(seed);
    [this.address, this.outside, this.key] = [
      world.newAddress(),
      world.newAddress(),
      world.newKey(),
    ];
    this.keeper = this.program('');
    this.sender = new Program({ command: [process.execPath, PROGRAM] });
  }

  /** @param role 'opener' for one that may be killed */
  program(role: string): Program {
    const env = {
      ...process.env,
      NODE_OPTIONS: `--import ${HOOK}`,
      XRC_KILL_DIRECTORY: this.directory,
      XRC_KILL_ROLE: role,
    };
    return new Program({ command: [process.execPath, PROGRAM], env });
  }

  async enter(): Promise<void> {
    const opened = await this.keeper.ask(`domain ${this.key}`);
    if (opened !== 'domain') this.fails(`the keeper cannot open the domain: ${opened}`);
    this.srqn = Number(await this.keeper.ask('queue'));
  }

  fails(what: string): void {
    const { openers, hosts, missed, failures } = this.report;
    failures.push(`story ${openers + hosts + missed}: ${what}`);
  }

  order(role: string): string {
    return join(this.directory, role);
  }
}

export async function killBySeed(world: World, seed: number, kills: number): Promise<KillReport> {
  const stage = new Stage(world, seed);
  const { keeper, sender, address, outside, report } = stage;
  await keeper.ask(`open ${address}`);
  await sender.ask(`open ${outside} alone`);
  await stage.enter();
  const before = descriptorsOf(keeper.pid);
  try {
    while (report.openers + report.hosts < kills && report.missed < kills) await story(stage);
    const now = descriptorsOf(keeper.pid);
    if (now > before + SLACK) stage.fails(`${now} descriptors, ${before} at first`);
    const [host] = hostsOf(address);
    const ofHost = host === undefined ? 0 : descriptorsOf(host);
    if (ofHost > before + SLACK) stage.fails(`the host has ${ofHost} descriptors`);
    await keeper.ask('leave');
    await untilHosts(stage, 0);
  } finally {
    await Promise.all([keeper.kill(), sender.kill()]);
    rmSync(stage.directory, { recursive: true });
  }
  return report;
}

async function story(stage: Stage): Promise<void> {
  const { random, keeper, report } = stage;
  const role = random.between(0, 2) === 0 ? 'host' : 'opener';
  const when = random.between(0, 1) === 0 ? 'before' : 'after';
  writeFileSync(stage.order(role), `${random.between(1, MOST_MESSAGES)} ${when}`);
  const victim = stage.program('opener');
  const { target, kept } = await act(stage, victim);
  const isKilled = !existsSync(stage.order(role));
  rmSync(stage.order(role), { force: true });
  await victim.kill();
  if (!isKilled) report.missed++;
  else if (role === 'opener') report.openers++;
  else report.hosts++;
  if (isKilled && role === 'host') await afterHost(stage, kept ? target : 0);
  else if (kept) await afterOpener(stage, target);
  await untilHosts(stage, 1);
  const came = await keeper.ask(`received ${stage.arrived.length}`);
  for (const text of stage.arrived) {
    const times = came.split(',').filter((one) => one === text).length;
    if (times !== 1) stage.fails(`${text} came ${times} times`);
  }
}

/** What an opener does until it, or the host, is killed. */
async function act(stage: Stage, victim: Program): Promise<{ target: number; kept: boolean }> {
  const { sender, keeper, address, outside, key } = stage;
  let target = 0;
  let kept = false;
  /** @returns undefined once it is dead, or without a host */
  const ask = async (command: string): Promise<string | undefined> => {
    const said = await victim.ask(command).catch((error: Error) => {
      if (!error.message.includes('has ended')) stage.fails(error.message);
      return 'DAT_';
    });
    return said.startsWith('DAT_') ? undefined : said;
  };
  if ((await ask(`open ${address}`)) === undefined) return { target, kept };
  if ((await ask(`domain ${key}`)) === undefined) return { target, kept };
  const srqn = await ask('queue');
  if (srqn === undefined) return { target, kept };
  const made = await ask(`target ${outside} ${await sender.ask('initiator')}`);
  if (made === undefined) return { target, kept };
  target = Number(made);
  kept = (await keeper.ask(`register ${target}`)) === 'registered';
  await sender.ask(`attach ${address} ${target}`);
  const text = `k${target}`;
  if ((await sender.ask(`send ${stage.srqn} ${text}`)) === 'SUCCESS') stage.arrived.push(text);
  const sent = await sender.ask(`send ${srqn} v${target}`);
  if (sent === 'SUCCESS') await ask('received 1');
  // To a queue that is gone: that is an error of the target, for all.
  else if (kept) {
    await keeper.ask(`unregister ${target}`);
    kept = false;
  }
  if ((await ask(`unregister ${target}`)) !== undefined) await ask('leave');
  return { target, kept };
}

/** The target lives on for the one that keeps it. */
async function afterOpener(stage: Stage, target: number): Promise<void> {
  const { keeper, sender, srqn } = stage;
  const text = `after${target}`;
  const sent = await sender.ask(`send ${srqn} ${text}`);
  if (sent === 'SUCCESS') stage.arrived.push(text);
  else stage.fails(`a target that is kept: ${sent}`);
  const ended = await keeper.ask(`unregister ${target}`);
  if (ended !== 'unregistered') stage.fails(`unregister: ${ended}`);
}

/** One fatal event, and then a new host. */
async function afterHost(stage: Stage, target: number): Promise<void> {
  const { keeper } = stage;
  const fatal = `${target} QP_FATAL`;
  const toldOf = async (): Promise<number> => {
    const all = (await keeper.ask('told 0')).split(',');
    return all.filter((one) => one === fatal).length;
  };
  if (target !== 0) {
    const endMs = performance.now() + patience(END_MS);
    while ((await toldOf()) === 0 && performance.now() < endMs) await paused(LOOK_MS);
  }
  const left = await keeper.ask('leave');
  if (left !== 'left') stage.fails(`leave: ${left}`);
  await stage.enter();
  const times = await toldOf();
  if (target !== 0 && times !== 1) stage.fails(`${fatal} came ${times} times`);
}

async function untilHosts(stage: Stage, count: number): Promise<void> {
  const endMs = performance.now() + patience(END_MS);
  while (hostsOf(stage.address).length !== count) {
    if (performance.now() > endMs) {
      stage.fails(`${hostsOf(stage.address).length} hosts, ${count} expected`);
      return;
    }
    await paused(LOOK_MS);
  }
}

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
