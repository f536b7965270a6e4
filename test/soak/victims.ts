/** Starting victims, and connections with them. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Psp } from '../../core/index.js';
import { keepConnecting, type Side, Talker } from './talker.js';
import type { VictimEnd, VictimMessage, VictimMood, VictimPlan } from './victim.js';

export class Victim {
  private readonly said: VictimMessage[] = [];
  private stderr = '';
  /** Frees what was made here for it. */
  onEnd: () => void = () => undefined;

  constructor(readonly child: ChildProcess) {
    child.on('message', (message) => this.said.push(message as VictimMessage));
    child.stderr?.on('data', (data: Buffer) => (this.stderr += data.toString()));
  }

  get isGone(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  tell(message: 'ping' | VictimMood | VictimEnd): void {
    this.child.send(message);
  }

  /** Waits until it has said so. @throws Error when it ends instead */
  async hears(message: VictimMessage): Promise<void> {
    while (!this.said.includes(message)) {
      if (this.isGone) throw new Error(`the victim has ended before '${message}': ${this.stderr}`);
      await delay(2);
    }
    this.said.splice(this.said.indexOf(message), 1);
  }

  /** However it is: it ends now. */
  async end(): Promise<void> {
    if (!this.isGone) {
      const exited = once(this.child, 'exit');
      this.child.kill('SIGKILL');
      await exited;
    }
    this.onEnd();
  }
}

export function startVictim(plan: VictimPlan): Victim {
  const path = join(import.meta.dirname, 'victim.js');
  const stdio = ['ignore', 'ignore', 'pipe', 'ipc'] as const;
  return new Victim(fork(path, [JSON.stringify(plan)], { stdio: [...stdio] }));
}

/**
 * Our ends of its connections, as they come about; in a churn they go on doing so.
 * @param goesOn false ends a churn from here
 * @returns when it is ready
 */
export async function establish(
  side: Side,
  plan: VictimPlan,
  victim: Victim,
  moves = false,
  goesOn: () => boolean = () => false,
): Promise<Talker[]> {
  const talkers: Talker[] = [];
  const options = { attributes: plan.attributes, phase: plan.phase, moves };
  if (plan.role === 'connect') victim.onEnd = acceptAll(side, plan, options, talkers);
  else {
    await victim.hears('listening');
    const to = { address: plan.own, connQual: plan.connQual };
    for (let i = 0; i < plan.connections; i++) {
      void keepConnecting(side, options, to, goesOn, (talker) => talkers.push(talker));
    }
  }
  await victim.hears('ready');
  return talkers;
}

function acceptAll(
  side: Side,
  { connQual }: VictimPlan,
  options: ConstructorParameters<typeof Talker>[1],
  talkers: Talker[],
): () => void {
  const evd = side.ia.createEvd({
    qlen: 1024,
    policy: 'ONE',
    handler: (event) => {
      if (event.type !== 'connection-request') return;
      const talker = new Talker(side, options);
      talkers.push(talker);
      void talker.accept(event.cr);
    },
  });
  const psp: Psp = side.ia.createPsp({ connQual, evd });
  return () => {
    psp.free();
    void evd.free();
  };
}
