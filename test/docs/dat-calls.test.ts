// Each call that docs/dat-map.md names is called here, on mock: what its row says is what runs.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAT_SUBTYPES, DAT_TYPES } from 'dapl';
import { argumentRows, PROTOTYPES, REQUEST_ROWS } from './argument-rows.js';
import { ADAPTER_CALLS, DISPATCHER_CALLS } from './calls-of-adapters.js';
import {
  CONNECTING_CALLS,
  KERNEL_CALLS,
  MEMORY_CALLS,
  SHARING_CALLS,
} from './calls-of-connecting.js';
import { ENDPOINT_CALLS, IB_CALLS } from './calls-of-endpoints.js';
import { EXTENSION_CALLS } from './calls-of-extensions.js';
import { DatScene, type RowCalls } from './dat-scene.js';

const CALLS: RowCalls = {
  ...{ ...ADAPTER_CALLS, ...DISPATCHER_CALLS, ...ENDPOINT_CALLS, ...CONNECTING_CALLS },
  ...{ ...MEMORY_CALLS, ...SHARING_CALLS, ...KERNEL_CALLS, ...IB_CALLS, ...EXTENSION_CALLS },
};

interface Row {
  readonly name: string;
  readonly ours: string;
  readonly difference: string;
}

function rowsOfCalls(): Row[] {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/dat-map.md'), 'utf8');
  const sections = text.split(/^## /m).filter((section) => section.startsWith('Calls: '));
  return sections.flatMap((section) =>
    [...section.matchAll(/^\| `([^`]+)` \| (.*?) \| (.*) \|$/gm)].map(
      ([, name = '', ours = '', difference = '']) => ({ name, ours, difference }),
    ),
  );
}

/** What a row's cell names last: the method or property that its call has to use. */
function memberOf(ours: string): string {
  const [, code = ''] = /`([^`]+)`/.exec(ours) ?? [];
  return /(\w+\$?)(?:\([^)]*\))?$/.exec(code)?.[1] ?? code;
}

/** Errors of ours that an explanation names. */
function errorsIn(difference: string): string[] {
  const known = [
    ...Object.keys(DAT_TYPES),
    ...Object.keys(DAT_SUBTYPES).map((key) => `DAT_${key}`),
  ];
  const named = [...difference.matchAll(/`(DAT_\w+)`/g)].map(([, name = '']) => name);
  return named.filter((name) => known.includes(name));
}

const rows = rowsOfCalls();
const present = rows.filter(({ ours }) => ours !== 'not there');

describe('calls of docs/dat-map.md', () => {
  it('have a call here, each that is there and no other', () => {
    assert.ok(rows.length > 120);
    assert.deepEqual(Object.keys(CALLS).sort(), present.map(({ name }) => name).sort());
  });

  for (const { name, ours, difference } of present) {
    it(`${name}: does as its row says`, async () => {
      const call = CALLS[name]!;
      const member = memberOf(ours);
      assert.match(String(call), RegExp(`\\b${member}\\b`), `${name} does not use ${member}`);
      const scene = await DatScene.open();
      try {
        await call(scene);
        const missing = errorsIn(difference).filter((error) => !scene.refusals.has(error));
        assert.deepEqual(missing, [], 'errors that the row names');
      } finally {
        await scene.pair.close();
      }
    });
  }

  it('count arguments as DAT counts them', async () => {
    const scene = await DatScene.open();
    const peers = await scene.connected();
    for (const [name, argument, call] of argumentRows()) {
      const position = PROTOTYPES[name].split(' ').indexOf(argument) + 1;
      assert.ok(position > 0, `${name} has no ${argument}`);
      await scene
        .refuses(() => call(peers), `DAT_INVALID_ARG${position}`)
        .catch((cause: unknown) => {
          throw new Error(`${name}, ${argument}`, { cause });
        });
    }
    assert.equal(peers.active.ep.state, 'CONNECTED');
    await scene.pair.close();
  });

  it('count arguments of an answer as DAT counts them', async () => {
    const scene = await DatScene.open();
    const { cr, passive } = await scene.asked();
    for (const [name, argument, method, value] of REQUEST_ROWS) {
      const position = PROTOTYPES[name].split(' ').indexOf(argument) + 1;
      const call = cr[method].bind(cr) as (...given: unknown[]) => void;
      const given = method === 'accept' ? [passive.ep, value] : [value];
      await scene.refuses(() => call(...given), `DAT_INVALID_ARG${position}`);
      assert.equal(cr.state, 'PENDING');
    }
    await scene.pair.close();
  });
});
