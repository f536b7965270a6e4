import assert from 'node:assert/strict';
import {
  checkQpTransition,
  gidFromIp,
  nameOf,
  QpState,
  qpTransition,
  QpType,
  type QueuePairAttributes,
  SpiError,
} from '../../../core/spi/index.js';

const VALUES: Required<Omit<QueuePairAttributes, 'state' | 'currentState'>> = {
  enableSqdAsyncNotify: true,
  accessFlags: 0,
  pkeyIndex: 0,
  portNumber: 1,
  qkey: 1,
  addressVector: { gid: gidFromIp('10.0.0.1'), localGidIndex: 0 },
  pathMtuBytes: 1024,
  destinationQpn: 1,
  receivePsn: 1,
  sendPsn: 1,
  maxDestRdAtomic: 1,
  maxRdAtomic: 1,
  minRnrTimer: 1,
  timeout: 1,
  retryCount: 1,
  rnrRetryCount: 1,
};
type Name = keyof typeof VALUES | 'currentState';

/** Attributes by their short names in the tables below. */
const NAMES: Readonly<Record<string, Name>> = {
  PKEY: 'pkeyIndex',
  PORT: 'portNumber',
  ACC: 'accessFlags',
  QKEY: 'qkey',
  AV: 'addressVector',
  MTU: 'pathMtuBytes',
  DQPN: 'destinationQpn',
  RQPSN: 'receivePsn',
  DRD: 'maxDestRdAtomic',
  RNRT: 'minRnrTimer',
  SQPSN: 'sendPsn',
  TO: 'timeout',
  RC: 'retryCount',
  RNRC: 'rnrRetryCount',
  RD: 'maxRdAtomic',
  CUR: 'currentState',
  SQDN: 'enableSqdAsyncNotify',
};

/**
 * Required / optional attributes of each transition, as in Linux's `ib_modify_qp_is_ok`
 * (drivers/infiniband/core/verbs.c), without ALT_PATH.
 */
const LINUX_TABLE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  RC: {
    'RESET INIT': 'PKEY PORT ACC /',
    'INIT INIT': '/ PKEY PORT ACC',
    'INIT RTR': 'AV MTU DQPN RQPSN DRD RNRT / ACC PKEY',
    'RTR RTS': 'SQPSN TO RC RNRC RD / CUR ACC RNRT',
    'RTS RTS': '/ CUR ACC RNRT',
    'RTS SQD': '/ SQDN',
    'SQD RTS': '/ CUR ACC RNRT',
    'SQD SQD': '/ PORT AV TO RC RNRC RD DRD ACC PKEY RNRT',
    'SQE RTS': '/',
  },
  UC: {
    'RESET INIT': 'PKEY PORT ACC /',
    'INIT INIT': '/ PKEY PORT ACC',
    'INIT RTR': 'AV MTU DQPN RQPSN / ACC PKEY',
    'RTR RTS': 'SQPSN / CUR ACC',
    'RTS RTS': '/ CUR ACC',
    'RTS SQD': '/ SQDN',
    'SQD RTS': '/ CUR ACC',
    'SQD SQD': '/ AV ACC PKEY',
    'SQE RTS': '/ CUR ACC',
  },
  UD: {
    'RESET INIT': 'PKEY PORT QKEY /',
    'INIT INIT': '/ PKEY PORT QKEY',
    'INIT RTR': '/ PKEY QKEY',
    'RTR RTS': 'SQPSN / CUR QKEY',
    'RTS RTS': '/ CUR QKEY',
    'RTS SQD': '/ SQDN',
    'SQD RTS': '/ CUR QKEY',
    'SQD SQD': '/ PKEY QKEY',
    'SQE RTS': '/ CUR QKEY',
  },
  GSI: {
    'RESET INIT': 'PKEY QKEY /',
    'INIT INIT': '/ PKEY QKEY',
    'INIT RTR': '/ PKEY QKEY',
    'RTR RTS': 'SQPSN / CUR QKEY',
    'RTS RTS': '/ CUR QKEY',
    'RTS SQD': '/ SQDN',
    'SQD RTS': '/ CUR QKEY',
    'SQD SQD': '/ PKEY QKEY',
    'SQE RTS': '/ CUR QKEY',
  },
  XRC_INI: {
    'RESET INIT': 'PKEY PORT ACC /',
    'INIT INIT': '/ PKEY PORT ACC',
    'INIT RTR': 'AV MTU DQPN RQPSN / ACC PKEY',
    'RTR RTS': 'SQPSN TO RC RNRC RD / CUR ACC',
    'RTS RTS': '/ CUR ACC',
    'RTS SQD': '/ SQDN',
    'SQD RTS': '/ CUR ACC',
    'SQD SQD': '/ PORT AV TO RC RNRC RD ACC PKEY',
  },
  XRC_TGT: {
    'RESET INIT': 'PKEY PORT ACC /',
    'INIT INIT': '/ PKEY PORT ACC',
    'INIT RTR': 'AV MTU DQPN RQPSN DRD RNRT / ACC PKEY',
    'RTR RTS': 'SQPSN TO / CUR ACC RNRT',
    'RTS RTS': '/ CUR ACC RNRT',
    'RTS SQD': '/ SQDN',
    'SQD RTS': '/ CUR ACC RNRT',
    'SQD SQD': '/ PORT AV TO DRD ACC PKEY RNRT',
  },
};

function expected(type: string, from: string, to: string): [Name[], Name[]] | undefined {
  if (to === 'RESET' || (to === 'ERR' && from !== 'RESET')) return [[], []];
  const row = LINUX_TABLE[type]![`${from} ${to}`];
  if (row === undefined) return undefined;
  const [required = '', optional = ''] = row.split('/');
  const names = (text: string): Name[] =>
    text
      .trim()
      .split(' ')
      .filter(Boolean)
      .map((n) => NAMES[n]!);
  return [names(required), names(optional)];
}

function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    assert.ok(error instanceof SpiError && error.code === 'EINVAL');
    return error.message;
  }
  return assert.fail('was allowed');
}

for (const [typeName, type] of Object.entries(QpType)) {
  describe(`Queue pair transitions of ${typeName}`, () => {
    for (const from of Object.values(QpState)) {
      for (const to of Object.values(QpState)) {
        const name = `${nameOf(QpState, from)} -> ${nameOf(QpState, to)}`;
        const row = expected(typeName, nameOf(QpState, from), nameOf(QpState, to));
        it(`${name} is ${row ? 'as the table says' : 'refused'}`, () => {
          if (!row) {
            assert.equal(qpTransition(type, from, to), undefined);
            assert.match(
              refusal(() => checkQpTransition(type, from, { state: to })),
              /no such/,
            );
            return;
          }
          const [required, optional] = row;
          const all = { ...VALUES, currentState: from };
          const pick = (names: readonly Name[]): QueuePairAttributes => ({
            ...Object.fromEntries(names.map((n) => [n, all[n]])),
            state: to,
          });
          assert.equal(checkQpTransition(type, from, pick(required)), to);
          assert.equal(checkQpTransition(type, from, pick([...required, ...optional])), to);
          for (const one of required) {
            const message = refusal(() =>
              checkQpTransition(type, from, pick(required.filter((n) => n !== one))),
            );
            assert.match(message, new RegExp(`${one} missing`));
          }
          for (const extra of Object.keys(all) as Name[]) {
            if (required.includes(extra) || optional.includes(extra)) continue;
            const message = refusal(() =>
              checkQpTransition(type, from, pick([...required, extra])),
            );
            assert.match(message, new RegExp(`takes no ${extra}`));
          }
        });
      }
    }
  });
}
