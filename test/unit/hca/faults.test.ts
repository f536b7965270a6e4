/** The one grammar of faults: which rules are refused, what they hit, and what they count. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MadMethod, WcStatus } from '../../../core/spi/index.js';
import { type FaultRule, FaultScript } from '../../../plugins/faults/grammar/fault-script.js';
import {
  OPCODE_NAMES,
  PACKET_FAULTS,
  type PacketAction,
  type PacketMatch,
  type PacketView,
} from '../../../plugins/faults/grammar/packet-faults.js';
import { SEND_FAULTS } from '../../../plugins/faults/grammar/send-faults.js';
import { SeededRandom } from '../../../providers/mock/index.js';

const newRandom = (seed: number): SeededRandom => new SeededRandom(seed);
const packets = (seed = 1): FaultScript<PacketView, PacketMatch, PacketAction> =>
  new FaultScript(PACKET_FAULTS, seed, newRandom);
const DROP = { type: 'drop' } as const;
const PACKET: PacketView = {
  from: '10.0.0.1',
  to: '10.0.0.2',
  opcode: 4,
  opcodeName: 'RC_SEND_ONLY',
  destinationQpn: 17,
  psn: 5,
  bytes: new Uint8Array(16),
  mad: undefined,
};
const MAD = {
  baseVersion: 1,
  managementClass: 7,
  classVersion: 2,
  method: MadMethod.SEND,
  status: 0,
  classSpecific: 0,
  transactionIdHi: 1,
  transactionIdLo: 2,
  attributeId: 0x10,
  attributeModifier: 0,
};

function refused(rule: unknown, message: RegExp): void {
  assert.throws(
    () => packets().add(rule as FaultRule<PacketMatch, PacketAction>),
    (error) => {
      assert.ok(error instanceof RangeError, String(error));
      assert.match(error.message, message);
      return true;
    },
  );
}

describe('a fault rule', () => {
  it('has match, action and seed, and nothing else', () => {
    refused(undefined, /^options is undefined; it must be an object$/);
    refused(
      { action: DROP, nth: 1 },
      /^an option is "nth"; it must be one of match, action, seed$/,
    );
    refused({ action: DROP, sede: 1 }, /^an option is "sede"; .*: did you mean "seed"\?$/);
    refused({ action: DROP, seed: -1 }, /^seed is -1; it must be an integer from 0 to/);
    refused({ match: {} }, /^action is undefined; it must be an object$/);
    refused({ action: 'drop' }, /^action is "drop"; it must be an object$/);
    refused({ action: DROP, match: 'all' }, /^match is "all"; it must be an object$/);
  });

  it('knows its actions, and what each takes', () => {
    const action = (given: object, message: RegExp): void => refused({ action: given }, message);
    action(
      {},
      /^action: type is undefined; it must be one of "drop", "delay", "duplicate", "corrup/,
    );
    action({ type: 'dorp' }, /^action: type is "dorp"; .*: did you mean "drop"\?$/);
    action({ type: 'drop', byUs: 1 }, /^action: an option is "byUs"; it must be one of type$/);
    action({ type: 'delay' }, /^action: byUs is undefined; it must be a number from 0 to/);
    action({ type: 'delay', byMs: 1 }, /^action: an option is "byMs"; .*: did you mean "byUs"\?$/);
    action({ type: 'delay', byUs: Infinity }, /^action: byUs is Infinity; it must be a number/);
    action(
      { type: 'duplicate', afterUs: [] },
      /^action: afterUs is an array of 0; it must be a li/,
    );
    action({ type: 'duplicate', afterUs: [NaN] }, /^action: afterUs is an array of 1;/);
    action({ type: 'duplicate', afterUs: 7 }, /^action: afterUs is 7;/);
    action({ type: 'corrupt', byteOffset: -1 }, /^action: byteOffset is -1; it must be an integer/);
    action(
      { type: 'corrupt', byteOffset: 0, mask: 256 },
      /^action: mask is 256; .* from 1 to 255$/,
    );
    action({ type: 'corrupt', byteOffset: 0, mask: 0 }, /^action: mask is 0;/);
  });

  it('knows what may be matched', () => {
    const match = (given: object, message: RegExp): void =>
      refused({ match: given, action: DROP }, message);
    match({ form: '::1' }, /^match: an option is "form"; .*: did you mean "from"\?$/);
    match(
      { losspercent: 5 },
      /^match: an option is "losspercent"; it must be one of from, to, opc/,
    );
    match({ opcode: 'NONSENSE' }, /^match: opcode is "NONSENSE"; .* name of an opcode, such as/);
    match({ opcode: 'RC_SENT_ONLY' }, /^match: opcode is .*: did you mean "RC_SEND_ONLY"\?$/);
    match({ opcode: 256 }, /^match: opcode is 256; .* or its code, 0 to 255$/);
    match(
      { from: 'localhost' },
      /^match: from is "localhost"; it must be an IP address in its usu/,
    );
    match({ to: '::FFFF:10.0.0.1' }, /^match: to is "::FFFF:10\.0\.0\.1"; .* in its usual text/);
    match(
      { destinationQpn: 2 ** 24 },
      /^match: destinationQpn is 16777216; .* from 0 to 16777215$/,
    );
    match({ psn: 0.5 }, /^match: psn is 0\.5;/);
    match({ where: true }, /^match: where is true; it must be a function$/);
    match(
      { mad: { atributeId: 1 } },
      /^match: mad: an option is "atributeId"; .* "attributeId"\?$/,
    );
    match(
      { mad: { attributeId: 65536 } },
      /^match: mad: attributeId is 65536; .* from 0 to 65535$/,
    );
    match({ nth: 0 }, /^match: nth is 0; it must be an integer from 1 on$/);
    match({ count: 0 }, /^match: count is 0; it must be an integer from 1 on, or Infinity$/);
    match({ count: 1.5 }, /^match: count is 1\.5;/);
    match({ percent: 0 }, /^match: percent is 0; it must be a number above 0, up to 100$/);
    match({ percent: 101 }, /^match: percent is 101;/);
  });

  it('of sends knows numbers of verbs', () => {
    const script = new FaultScript(SEND_FAULTS, 1, newRandom);
    const add = (match: object, status: number) => () =>
      script.add({ match, action: { type: 'fail', status } as never });
    assert.throws(add({ qp: 2 }, 1), /^RangeError: match: an option is "qp"; .* mean "qpn"\?$/);
    assert.throws(add({ opcode: 99 }, 1), /^RangeError: match: opcode is 99; .* of WrOpcode$/);
    assert.throws(add({}, WcStatus.SUCCESS), /^RangeError: action: status is 0; .* no success$/);
    assert.throws(add({}, 999), /^RangeError: action: status is 999;/);
  });

  it('that is refused changes nothing', () => {
    const script = packets();
    assert.throws(() => script.add({ action: { type: 'dorp' } as never }), RangeError);
    assert.equal(script.any, false);
    assert.deepEqual(script.unhit, []);
  });
});

describe('a fault', () => {
  const rows: readonly (readonly [PacketMatch, hit: boolean])[] = [
    [{}, true],
    [{ from: '10.0.0.1', to: '10.0.0.2' }, true],
    [{ from: '10.0.0.2' }, false],
    [{ to: '10.0.0.1' }, false],
    [{ opcode: 'RC_SEND_ONLY' }, true],
    [{ opcode: 4 }, true],
    [{ opcode: 'UC_SEND_ONLY' }, false],
    [{ opcode: 36 }, false],
    [{ destinationQpn: 17, psn: 5 }, true],
    [{ destinationQpn: 5 }, false],
    [{ psn: 17 }, false],
    [{ mad: {} }, false],
    [{ where: ({ psn }) => psn === 5 }, true],
    [{ psn: 5, where: () => false }, false],
  ];
  for (const [match, hit] of rows) {
    it(`${hit ? 'hits' : 'leaves'} a packet by ${JSON.stringify(match)}`, () => {
      const script = packets();
      const fault = script.add({ match, action: DROP });
      assert.equal(script.decide(PACKET), hit ? DROP : undefined);
      assert.deepEqual([fault.matched, fault.hits], hit ? [1, 1] : [0, 0]);
    });
  }

  it('matches the fields of a MAD that are given', () => {
    const packet = { ...PACKET, mad: MAD };
    const hits = (mad: PacketMatch['mad']): boolean => {
      const script = packets();
      script.add({ match: { mad: mad! }, action: DROP });
      return script.decide(packet) !== undefined;
    };
    assert.equal(hits({}), true);
    assert.equal(hits({ managementClass: 7, attributeId: 0x10 }), true);
    assert.equal(hits({ managementClass: 7, attributeId: 0x11 }), false);
    assert.equal(hits({ attributeId: undefined as never }), true);
  });

  it('hits from the n-th match on, so many in a row, one by default', () => {
    const hitsOf = (match: FaultRule<PacketMatch, PacketAction>['match']): string => {
      const script = packets();
      script.add({ ...(match && { match }), action: DROP });
      return Array.from({ length: 6 }, () => (script.decide(PACKET) ? 'x' : '.')).join('');
    };
    assert.equal(hitsOf(undefined), 'x.....');
    assert.equal(hitsOf({ nth: 3 }), '..x...');
    assert.equal(hitsOf({ nth: 2, count: 3 }), '.xxx..');
    assert.equal(hitsOf({ nth: 2, count: Infinity }), '.xxxxx');
  });

  it('hits a share of the matches by chance, the same for a seed', () => {
    const run = (rule: object, ofWorld = 1): string => {
      const script = packets(ofWorld);
      const fault = script.add({ action: DROP, ...rule });
      const hits = Array.from({ length: 400 }, () => (script.decide(PACKET) ? 'x' : '.')).join('');
      assert.equal(fault.matched, 400);
      assert.equal(fault.hits, hits.replaceAll('.', '').length);
      return hits;
    };
    const quarter = run({ match: { percent: 25 } });
    const hits = quarter.replaceAll('.', '').length;
    assert.ok(hits > 60 && hits < 140, `${hits} of 400`);
    assert.equal(run({ match: { percent: 25 } }), quarter);
    assert.notEqual(run({ match: { percent: 25 } }, 2), quarter, 'another world');
    assert.equal(
      run({ match: { percent: 25 }, seed: 9 }),
      run({ match: { percent: 25 }, seed: 9 }, 2),
    );
    assert.equal(run({ match: { percent: 100 } }), 'x'.repeat(400));
    const few = run({ match: { percent: 50, nth: 11, count: 20 } });
    assert.match(few, /^\.{10}[x.]{20}\.{370}$/);
    assert.match(few, /x/);
  });

  it('of another rule has chance of its own', () => {
    const script = packets();
    const alternate = (): string => {
      const action = script.decide(PACKET);
      return action === undefined ? '.' : action === DROP ? 'x' : 'y';
    };
    script.add({ match: { percent: 50 }, action: DROP });
    script.add({ match: { percent: 50 }, action: { type: 'delay', byUs: 1 } });
    const seen = Array.from({ length: 100 }, alternate).join('');
    for (const what of ['x', 'y', '.']) assert.ok(seen.includes(what), seen);
  });

  it('decides alone, the first that takes a packet; removed, it takes none', () => {
    const script = packets();
    const first = script.add({ match: { nth: 2 }, action: DROP });
    const second = script.add({ match: { count: Infinity }, action: { type: 'delay', byUs: 1 } });
    const types = (count: number): (string | undefined)[] =>
      Array.from({ length: count }, () => script.decide(PACKET)?.type);
    assert.deepEqual(types(3), ['delay', 'drop', 'delay']);
    assert.deepEqual([first.matched, second.matched], [3, 2], 'what the first takes is not shown');
    second.remove();
    second.remove();
    assert.deepEqual(types(1), [undefined]);
    assert.equal(second.matched, 2);
    script.clear();
    assert.equal(script.any, false);
  });

  it('that has hit nothing is told at the end of a test', () => {
    const script = packets();
    script.assertAllHit();
    const late = script.add({ match: { opcode: 'RC_SEND_ONLY', nth: 2 }, action: DROP });
    script.add({ match: { mad: { attributeId: 16 }, where: () => true }, action: DROP });
    script.add({ action: { type: 'delay', byUs: 1 } });
    script.decide(PACKET);
    const text =
      'Error: faults that have hit nothing: ' +
      'drop of opcode "RC_SEND_ONLY", nth 2 (1 matched); ' +
      'drop of mad { attributeId 16 }, where a function (0 matched)';
    assert.throws(
      () => script.assertAllHit(),
      (error) => String(error) === text,
    );
    late.remove();
    assert.equal(script.unhit.length, 1);
  });
});

describe('the page of the mock', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/mock.md'), 'utf8');

  it('lists the opcodes that there are', () => {
    const words = (cell = ''): string[] =>
      [...cell.matchAll(/`([A-Z_]+)`/g)].map(([, word]) => word!);
    const rows = [...page.matchAll(/^\| (`[A-Z]+_`[^|]*) \| ([^|]*) \|$/gm)];
    const listed = rows.flatMap(([, prefixes, names]) =>
      words(prefixes).flatMap((prefix) => words(names).map((name) => prefix + name)),
    );
    assert.deepEqual(listed.sort(), [...OPCODE_NAMES].sort());
  });

  it('lists what may be matched, and the actions', () => {
    const firstCells = page.split('\n').map((row) => row.split('|')[1] ?? '');
    for (const name of [...Object.keys(PACKET_FAULTS.match), 'nth', 'count', 'percent']) {
      assert.ok(
        firstCells.some((cell) => cell.includes(`\`${name}\``)),
        name,
      );
    }
    for (const type of Object.keys(PACKET_FAULTS.actions)) {
      assert.ok(page.includes(`type: '${type}'`), type);
    }
  });
});
