// Packet ports with one fault each: the suite of ports finds it, and says what is wrong.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { runPacketPort } from 'dapl/testing';
import { longIt } from '../support/lane.js';
import { endPlants, fixture, type Plant, PLANT_VARIABLE } from '../support/ports/planted.js';

/** A behaviour that finds the fault, and what it says. */
const FOUND_BY: Readonly<Record<Plant, readonly [behaviour: string, says: RegExp]>> = {
  CallsInsideSend: [
    'Delivering: delivers every header length',
    /onReadable was called inside send/,
  ],
  CallsLate: ['Closing: closes in the middle', /onReadable was called after close/],
  TellsOfPeersGone: [
    'Memory: refuses packets',
    /said peer-gone of path 77, and both ports are open/,
  ],
  LeavesATimer: ['Paths: counts paths', /^after close [^']*'Timeout, Timeout'/],
  LeavesASocket: ['Paths: counts paths', /^after close [^']*'UDPWrap, UDPWrap'/i],
  HoldsTheProcess: ['Process: keeps this one running only', /while nothing holds it/],
  NeverHolds: ['Process: a process of its own goes on', /the process, after so long/],
  NamesTheFirst: ['Delivering: tells two addresses', /LOCAL_GID_INDEX of what came/],
  NamesNone: ['Memory: uses region numbers', /LOCAL_GID_INDEX 7: the port has 2 addresses/],
};

describe('Faulty packet ports', () => {
  afterEach(async () => {
    endPlants();
    // Timers of a behaviour that has failed would hide those of the next port.
    await delay(100);
    Reflect.deleteProperty(process.env, PLANT_VARIABLE);
  });

  for (const [plant, [behaviour, says]] of Object.entries(FOUND_BY)) {
    it(`${plant}: is found`, async () => {
      process.env[PLANT_VARIABLE] = plant;
      const filter = (title: string): boolean => title.startsWith(`IPv4: ${behaviour}`);
      const results = await runPacketPort(fixture, { filter });
      assert.deepEqual(
        results.map(({ outcome }) => outcome),
        ['failed'],
      );
      assert.match(results[0]?.message ?? '', says);
    });
  }

  // Each waits for as long as the suite waits for a process to end.
  for (const mode of ['idle', 'closed']) {
    longIt(`a port that leaves a process running is found there: ${mode}`, async () => {
      process.env[PLANT_VARIABLE] = mode === 'idle' ? 'HoldsTheProcess' : 'LeavesATimer';
      const filter = (title: string): boolean =>
        title === `IPv4: Process: a process of its own ends with a port that is ${mode}`;
      const [result] = await runPacketPort(fixture, { filter });
      assert.match(result?.message ?? '', /^the process, after so long/);
    });
  }
});
