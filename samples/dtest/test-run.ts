/** Runs a test from end to end, on either side, once both know each other's address. */
import { setTimeout } from 'node:timers/promises';

import type { Ia } from 'dapl';

import { ended, leave } from '../endpoint.js';
import type { Steps } from './options.js';
import { CONN_QUAL } from './protocol.js';
import type { Print } from './report.js';
import { isEarly, Session } from './session.js';
import { runSteps } from './steps.js';

/** Connection attempts, for a server that has announced itself and does not listen yet. */
const ATTEMPTS = 20;
const PAUSE_MS = 250;

/** @param introduce is called once clients may connect */
export async function runServer(
  ia: Ia,
  steps: Steps,
  print: Print,
  introduce: () => Promise<void>,
): Promise<void> {
  const requests = ia.createEvd({ qlen: 4 });
  const psp = ia.createPsp({ connQual: CONN_QUAL, evd: requests });
  const session = new Session(ia, 'server', steps);
  await introduce();
  const { event } = await requests.wait();
  if (event.type !== 'connection-request') throw new Error(`a ${event.type} event at the psp`);
  await session.accept(event.cr);
  psp.free();
  await runSteps(session, print);
  await ended(session.endpoint);
  print('DAPL Test Complete. PASSED');
}

export async function runClient(
  ia: Ia,
  address: string,
  steps: Steps,
  print: Print,
): Promise<void> {
  const session = await connected(ia, address, steps);
  await runSteps(session, print);
  await leave(session.endpoint);
  print('DAPL Test Complete. PASSED');
}

async function connected(ia: Ia, address: string, steps: Steps): Promise<Session> {
  for (let attempt = 1; ; attempt++) {
    const session = new Session(ia, 'client', steps);
    try {
      await session.connect(address);
      return session;
    } catch (error) {
      if (attempt === ATTEMPTS || !isEarly(error)) throw error;
      session.free();
      await setTimeout(PAUSE_MS);
    }
  }
}
