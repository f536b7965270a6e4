/**
 * A server, an innocent client and a flooder, each a process with an address of its own on
 * loopback: what the client notices, and what the server does, before the flood and in it.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { FloodKind } from './datagrams.js';
import type { Noticed } from './innocent.js';
import { CONN_QUAL, Victim, type Work } from './victim.js';
import type { FloodAnswer, FloodCall } from './worker.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
const QUIET_SECONDS = 1;

export interface FloodRun {
  readonly kind: FloodKind;
  readonly perSecond: number;
  readonly seconds: number;
  /** The first three numbers of the addresses. */
  readonly network: string;
  readonly udpPort: number;
}

export interface Sample extends Noticed, Work {}

export interface FloodResult {
  readonly quiet: Sample;
  readonly flooded: Sample;
}

async function ask<T>(child: ChildProcess, call: FloodCall): Promise<T> {
  child.send(call);
  const [answer] = (await once(child, 'message')) as [FloodAnswer];
  if ('error' in answer) throw new Error(answer.error);
  return answer.value as T;
}

/** @throws SpiError EADDRINUSE when another program uses the addresses */
export async function runFlood(run: FloodRun): Promise<FloodResult> {
  const { kind, perSecond, seconds, network, udpPort } = run;
  const [to, local, from] = [1, 2, 9].map((last) => `${network}.${last}`) as [
    string,
    string,
    string,
  ];
  const victim = await Victim.open(to, udpPort);
  const innocent = fork(WORKER);
  const flooder = fork(WORKER);
  const sample = async (forSeconds: number): Promise<Sample> => {
    const [noticed, work] = await victim.during(() =>
      ask<Noticed>(innocent, { call: 'notice', seconds: forSeconds }),
    );
    return { ...noticed, ...work };
  };
  try {
    await ask(innocent, { call: 'open', local, remote: to, udpPort });
    const quiet = await sample(QUIET_SECONDS);
    const count = perSecond * seconds;
    const options = { kind, perSecond, count, from, to, udpPort, connQual: CONN_QUAL };
    const flooding = ask(flooder, { call: 'flood', options });
    const [flooded] = await Promise.all([sample(seconds), flooding]);
    return { quiet, flooded };
  } finally {
    innocent.kill();
    flooder.kill();
    await victim.close();
  }
}
