// A device that was written from the contract alone, without the software HCA, passes the suites;
// each of its mutants is found.
import assert from 'node:assert/strict';
import { type Ia, openIa } from 'dapl';
import { type BreachRule, strict } from 'dapl/spi/decorators';
import {
  describeDevice,
  type DeviceFixture,
  type DeviceNeed,
  type ProviderFixture,
  runDevice,
} from 'dapl/testing';
import { CM_MUTANTS, DEVICE_MUTANTS, type Mutant } from '../support/stranger/mutants.js';
import { stranger } from '../support/stranger/provider.js';
import type { ConfiguredProvider } from 'dapl/spi';
import { describeGroups } from './groups-alone.js';
import { immediates } from '../../plugins/testing/suite/transfers/immediates.js';
import { ask, CONN_QUAL, meet, until } from '../../plugins/testing/suite/peer.js';

let addresses = 0;

/** A mutant may keep its device open: no two share an address. */
function freshAddress(): string {
  addresses += 1;
  return `203.0.113.${addresses}`;
}

const CAPABILITIES: readonly DeviceNeed[] = ['loopback', 'rdma-read', 'solicited'];

const unchanged = (provider: ConfiguredProvider): ConfiguredProvider => provider;

function fixture(mutant?: Mutant, wrap = unchanged): DeviceFixture {
  const given = mutant === undefined ? {} : { mutant };
  return {
    capabilities: CAPABILITIES,
    openPair: async () => ({
      active: wrap(stranger({ address: freshAddress(), ...given })),
      passive: wrap(stranger({ address: freshAddress(), ...given })),
      // What a mutant never does need not be waited for long.
      ...(mutant !== undefined && { patienceMs: 500 }),
    }),
  };
}

describeDevice("a stranger's device", fixture());

const provider: ProviderFixture = {
  capabilities: ['rdma-read', 'refusal-reasons'],
  async openPair() {
    const active = await openIa(stranger({ address: freshAddress() }));
    const passive = await openIa(stranger({ address: freshAddress() }));
    return {
      active,
      passive,
      passiveAddress: passive.address,
      close: async () => {
        await Promise.all([active.close(), passive.close()]);
      },
    };
  },
};

describeGroups("a stranger's provider", provider, [immediates]);

/** Which behaviour finds each of them, others aside. */
const FOUND_BY: Readonly<Record<keyof typeof DEVICE_MUTANTS, string>> = {
  'completes twice': 'Transferring: a send of 64 bytes arrives bit by bit',
  'completes out of order': 'Transferring: requests complete in order',
  'notifies inside a call': 'Completing: arming with completions waiting calls nothing back',
  'notifies unarmed': 'Completing: a queue that is not armed does not notify',
  'overruns in silence': 'Completing: an overrun is told',
  'forgets to end its rings': 'Objects: the rings of a queue pair end with it',
  'forgets to flush receives': 'Failing: receives of the failed queue pair are flushed',
  'goes on behind a failure': 'Failing: what is before the failed request succeeds',
  'checks the key of a region, not its end': 'Protecting memory: a write beyond the end',
};

describe("Mutants of a stranger's device", () => {
  for (const mutant of Object.keys(DEVICE_MUTANTS) as (keyof typeof DEVICE_MUTANTS)[]) {
    it(`${mutant}: is found`, async () => {
      const filter = (title: string): boolean => title.startsWith(FOUND_BY[mutant]);
      const results = await runDevice(fixture(mutant), { filter });
      assert.deepEqual(
        results.map(({ outcome }) => outcome),
        ['failed'],
      );
    });
  }
});

/** What the guard of the contract says of those that break it where it can be seen from outside. */
const DEVICE_RULES: Readonly<Partial<Record<keyof typeof DEVICE_MUTANTS, BreachRule>>> = {
  'completes twice': 'completion-unknown',
  'completes out of order': 'completion-order',
  'notifies inside a call': 'handler-inside-call',
  'notifies unarmed': 'notify-unarmed',
  'forgets to end its rings': 'ring-not-ended',
  'goes on behind a failure': 'success-after-failure',
};

describe("Mutants of a stranger's device under the guard", () => {
  for (const [mutant, rule] of Object.entries(DEVICE_RULES)) {
    it(`${mutant}: is named ${rule}`, async () => {
      const rules = new Set<BreachRule>();
      const name = mutant as keyof typeof DEVICE_RULES;
      const guarded = fixture(name, (each) => strict(each, (seen) => void rules.add(seen.rule)));
      await runDevice(guarded, { filter: (title) => title.startsWith(FOUND_BY[name]) });
      assert.ok(rules.has(rule), [...rules].join());
    });
  }
});

/** What the guard of the contract says of a provider whose connection manager is wrong. */
const CM_RULES: Readonly<Record<keyof typeof CM_MUTANTS, BreachRule>> = {
  'establishes twice': 'connection-events',
  'answers inside the call': 'handler-inside-call',
};

describe("Mutants of a stranger's connection manager", () => {
  for (const mutant of Object.keys(CM_MUTANTS) as (keyof typeof CM_MUTANTS)[]) {
    it(`${mutant}: is named`, async () => {
      const rules = new Set<BreachRule>();
      const open = (address: string): Promise<Ia> =>
        openIa(strict(stranger({ address, mutant }), ({ rule }) => void rules.add(rule)));
      const [active, passive] = [await open(freshAddress()), await open(freshAddress())];
      try {
        const pair = {
          active,
          passive,
          passiveAddress: passive.address,
          close: async () => undefined,
        };
        const peers = meet(pair);
        if (mutant === 'establishes twice') (await ask(peers)).accept(peers.passive.ep);
        else peers.active.ep.connect({ address: passive.address, connQual: CONN_QUAL });
        await until(
          pair,
          () => rules.size > 0,
          () => 'no breach was named',
        );
      } finally {
        await Promise.all([active.close(), passive.close()]);
      }
      assert.deepEqual([...rules], [CM_RULES[mutant]]);
    });
  }
});
